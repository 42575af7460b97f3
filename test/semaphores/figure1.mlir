// RUN: mpkc simulate %s --bind n=3 --trace %t.json && sed 's/}, {/\n/g' %t.json | filecheck %s
// Figure 1 of the paper: one dependency at distance 2, and nothing else holds any engine back. e0 has ended long before
// the loop has; the third I2 issues once the first I3 has retired, 70 ns later: that is how long a signal takes.

sem.program @figure1(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  sem.inst @I0 engine "e0" cost 64
  sem.inst @I1 engine "e1" cost 64
  scf.for %a = %c0 to %n step %c1 {
    sem.inst @I2 engine "e2" cost 64 after [@I3 offset 2]
    sem.inst @I3 engine "e1" cost 640
  }
  sem.inst @I4 engine "e2" cost 64
  sem.inst @I5 engine "e0" cost 64
}

// CHECK:      "name": "I0"{{.*}}"ts": 0.0,{{.*}}"retires_ns": 64.0
// CHECK-NEXT: "name": "I5"{{.*}}"ts": 0.064,{{.*}}"retires_ns": 128.0
// CHECK:      "name": "I3"{{.*}}"iteration": [1],{{.*}}"retires_ns": 804.0
// CHECK:      "name": "I3"{{.*}}"iteration": [3],{{.*}}"retires_ns": 2244.0
// CHECK:      "name": "I2"{{.*}}"ts": 0.874,{{.*}}"iteration": [3]
