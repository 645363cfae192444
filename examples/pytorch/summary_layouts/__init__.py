"""The models and layouts of print_summaries.py, one file a layout."""
