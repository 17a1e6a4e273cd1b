import java.io.ByteArrayInputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Properties;

/** PEM files as key stores, for clients from before 2.7, which read no PEM. */
final class Stores {
    private static final char[] PASSWORD = "changeit".toCharArray();

    private Stores() { }

    /** Trust `ca`; show `cert` (certificate and key in one file) unless it is null. */
    static void use(Properties p, String ca, String cert) {
        try {
            KeyStore trusted = empty();
            trusted.setCertificateEntry("ca", certificate(ca));
            put(p, "truststore", trusted);
            if (cert != null) {
                KeyStore own = empty();
                byte[] key = part(cert, "PRIVATE KEY");
                own.setKeyEntry("own", KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(key)),
                    PASSWORD, new Certificate[] {certificate(cert)});
                put(p, "keystore", own);
                p.put("ssl.key.password", new String(PASSWORD));
            }
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static KeyStore empty() throws Exception {
        KeyStore store = KeyStore.getInstance("JKS");
        store.load(null, PASSWORD);
        return store;
    }

    private static void put(Properties p, String kind, KeyStore store) throws Exception {
        Path path = Files.createTempFile(kind, ".jks");
        path.toFile().deleteOnExit();
        try (OutputStream out = Files.newOutputStream(path)) {
            store.store(out, PASSWORD);
        }
        p.put("ssl." + kind + ".type", "JKS");
        p.put("ssl." + kind + ".location", path.toString());
        p.put("ssl." + kind + ".password", new String(PASSWORD));
    }

    private static Certificate certificate(String path) throws Exception {
        return CertificateFactory.getInstance("X.509")
            .generateCertificate(new ByteArrayInputStream(part(path, "CERTIFICATE")));
    }

    private static byte[] part(String path, String what) throws Exception {
        String text = new String(Files.readAllBytes(Paths.get(path)), "US-ASCII");
        String begin = "-----BEGIN " + what + "-----";
        int at = text.indexOf(begin) + begin.length();
        return Base64.getMimeDecoder().decode(text.substring(at, text.indexOf("-----END", at)));
    }
}
