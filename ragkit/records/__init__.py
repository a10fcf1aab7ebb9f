"""What happened: frozen records, checked at birth, and their files."""
