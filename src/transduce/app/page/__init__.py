"""The page in the browser: a local web server for one person on this computer."""
