//! Kuznyechik (GOST R 34.12-2015, RFC 7801).
