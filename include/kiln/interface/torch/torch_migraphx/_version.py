import kiln

__version__ = f"kiln-{kiln.__version__}"
