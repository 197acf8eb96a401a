"""Files that somebody made to harm, of every format, their checksums valid: generated, opened in a child, watched."""
