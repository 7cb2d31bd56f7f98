"""Eight threads with mixed batches on one session: what one thread gets, to the bit, and nothing is compiled again."""

import threading
import unittest

from help import DIGITS
import numpy as np
import onnxruntime as ort

THREADS, ROUNDS = 8, 40


class ThreadsTest(unittest.TestCase):
    def test_mixed_batches(self):
        session = ort.InferenceSession(DIGITS)
        random = np.random.default_rng(3)
        inputs = {batch: random.random((batch, 1, 8, 8), dtype=np.float32) for batch in range(1, 8)}
        expected = {batch: session.run(None, {"image": x})[0] for batch, x in inputs.items()}
        failures = []

        def work(number):
            try:
                binding = session.io_binding()
                for i in range(ROUNDS):
                    batch = (number + i) % 7 + 1
                    if i % 3:
                        got = session.run(["probabilities"], {"image": inputs[batch]})[0]
                    else:
                        binding.bind_cpu_input("image", inputs[batch])
                        binding.bind_output("probabilities")
                        session.run_with_iobinding(binding)
                        got = binding.copy_outputs_to_cpu()[0]
                    if got.tobytes() != expected[batch].tobytes():
                        failures.append((number, i, batch))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_sessions_are_made_and_released_by_many_threads(self):
        x = np.ones((2, 1, 8, 8), np.float32)
        expected = ort.InferenceSession(DIGITS).run(None, {"image": x})[0]
        got = []

        def work():
            for _ in range(3):
                got.append(ort.InferenceSession(DIGITS).run(None, {"image": x})[0])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(got), 12)
        for result in got:
            np.testing.assert_array_equal(result, expected)


if __name__ == "__main__":
    unittest.main()
