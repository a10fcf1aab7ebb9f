"""Shows an evaluation: as a page, as Markdown, on a console. Takes plain data and computes no figure."""
