import transduce

project = "transduce"
author = "the transduce developers"
copyright = "2026, the transduce developers"
release = version = transduce.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx-mathjax-offline",  # copies MathJax beside the pages, so that formulas need no network
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "Thumbs.db", "results/*/*.md"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
default_role = "literal"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",  # those on `fill` first
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # those pages would take scripts from the network
    "abort_on_example_error": True,
}
# The gallery stores functions of its own in the configuration, which cannot be pickled for the cache.
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "transduce"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": []}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "logo": {"text": "transduce"},
    # Pages of the API have no list of headings beside them, so that their examples fit.
    "secondary_sidebar_items": {
        "*": ["page-toc"],
        "methods/*": ["page-toc"],
        "auto_examples/*": ["page-toc"],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
