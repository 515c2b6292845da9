"""The application: tables, filling, reports, labelling, the page and the command line."""
