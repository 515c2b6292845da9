"""The application: reading tables, filling them, reports, labelling, the page and the command line."""
