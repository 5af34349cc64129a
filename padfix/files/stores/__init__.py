"""Files in stores that fsspec knows (S3, the web, Hugging Face, memory, archives): read in parts, listed, copied.

Everything here imports fsspec only when a URL is opened. Credentials are fsspec's business: what is said of a store is
said in words of ours, since those of the libraries may quote a signature.
"""
