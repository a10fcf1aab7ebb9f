def install_hook() -> bool:
    """to be written"""
    return False
