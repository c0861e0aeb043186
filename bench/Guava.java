/*
 * Guava's BloomFilter, measured as guava.c measures ours: one filter per line of standard input, filled and probed
 * for each of its keys and for as many others. Each writes one line: ns of CPU time of this thread per put, per key
 * found, per key not found, bytes, and the false positives.
 *
 *     java Guava {long|string} FPP KEYS
 */
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.function.IntFunction;

public final class Guava {
    private static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

    private static long mix(long z) {
        z += 0x9E3779B97F4A7C15L;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }

    private static <T> void round(Funnel<? super T> funnel, IntFunction<T> key, double fpp, int n) throws IOException {
        long began = threads.getCurrentThreadCpuTime();
        BloomFilter<T> filter = BloomFilter.create(funnel, n, fpp);
        for (int i = 0; i < n; i++) {
            filter.put(key.apply(i));
        }
        long added = threads.getCurrentThreadCpuTime();
        int found = 0;
        for (int i = 0; i < n; i++) {
            found += filter.mightContain(key.apply(i)) ? 1 : 0;
        }
        long probed = threads.getCurrentThreadCpuTime();
        int positive = 0;
        for (int i = n; i < 2 * n; i++) {
            positive += filter.mightContain(key.apply(i)) ? 1 : 0;
        }
        long ended = threads.getCurrentThreadCpuTime();
        if (found != n) {
            throw new IllegalStateException("a key is lost");
        }
        ByteArrayOutputStream image = new ByteArrayOutputStream();
        filter.writeTo(image);
        System.out.printf("%.2f %.2f %.2f %d %d%n", (added - began) / (double) n, (probed - added) / (double) n,
            (ended - probed) / (double) n, image.size(), positive);
    }

    public static void main(String[] arguments) throws IOException {
        double fpp = Double.parseDouble(arguments[1]);
        int n = Integer.parseInt(arguments[2]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        if (arguments[0].equals("string")) {
            String[] texts = new String[2 * n];
            for (int i = 0; i < 2 * n; i++) {
                texts[i] = String.format("https://www.example.org/item/%016x%016x/en", mix(i), (long) i);
            }
            while (lines.readLine() != null) {
                round(Funnels.stringFunnel(StandardCharsets.UTF_8), i -> texts[i], fpp, n);
            }
        } else {
            while (lines.readLine() != null) {
                round(Funnels.longFunnel(), i -> (long) i, fpp, n);
            }
        }
    }
}
