import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Takes a file's lock as Kafka takes that of a log folder, says so, and holds it until stdin ends. */
public class Lock {
    public static void main(String[] args) throws Exception {
        try (FileChannel file = FileChannel.open(Path.of(args[0]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            FileLock lock = file.tryLock();
            System.out.println(lock == null ? "refused" : "taken");
            if (lock != null) {
                while (System.in.read() >= 0) { }
            }
        }
    }
}
