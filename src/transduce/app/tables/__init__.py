"""Reading and writing tables: files, the target column, features, the new columns."""
