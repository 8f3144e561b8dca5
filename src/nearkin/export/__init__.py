"""The finished index into engines that scale."""
