"""Secrets of the handshake that RFC 8448 prints."""

HEX = bytes.fromhex


CLIENT_TRAFFIC = HEX("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5")


SERVER_TRAFFIC = HEX("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643")
