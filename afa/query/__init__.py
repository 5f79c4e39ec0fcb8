"""The query language (SASE+)."""
