"""Environment variables of this machine that a program gets in an otherwise empty environment."""

PASSED = (
    *("PIP_INDEX_URL", "PIP_CERT", "PIP_PROXY", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT"),
    *("PIP_RETRIES", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
)
"""Only the settings that are needed to reach a package index. Folders of wheels and extra indexes
are left out, since GitHub's runners do not have them."""
CACHES = ("PIP_CACHE_DIR", "UV_CACHE_DIR")
"""Folders in which installers cache downloads."""
