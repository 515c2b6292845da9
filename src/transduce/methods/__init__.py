"""One folder a paper: estimators, and the functions of arrays under them."""
