/** Threads of a virtual machine, its garbage collector, its compiled code; MPI through JNI (trial_jni.c). */
public class Trial {
    static final int STEPS = 200;

    static native void start();

    static native int rank();

    static native double sum(double mine);

    static native void halfWay();

    static native void stop();

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        start();
        int rank = rank();
        double total = 0;
        var kept = new java.util.ArrayList<double[]>();
        var workers = java.util.concurrent.Executors.newFixedThreadPool(3);
        for (int step = 0; step < STEPS; step++) {
            final int now = step;
            var made = workers.submit(() -> {
                double[] values = new double[10000];
                double sum = 0;
                for (int i = 0; i < values.length; i++) {
                    values[i] = (rank + now + i) % 17;
                    sum += values[i];
                }
                synchronized (kept) {
                    kept.add(values);
                    if (kept.size() > 50) kept.clear();
                }
                return sum;
            });
            total += sum(made.get());
            if (step == STEPS / 2) halfWay();
            if (step % 50 == 0) System.gc();
            Thread.sleep(1);
        }
        workers.shutdown();
        stop();
        if (rank == 0) System.out.printf("total %.0f%n", total);
    }
}
