// RUN: mpkc opt %s --split-input-file --verify-diagnostics --parsing-diagnostics --allow-unregistered-dialect | filecheck %s

tile.kernel @k() engines ["e", "e"] {
  
}
// CHECK: error: 'tile.kernel': names its engines once each

// -----

tile.kernel @k(%a : memref<8x32xf32, #tile.space<near>>) engines ["e", "f"] {
  
}
// CHECK: error: 'tile.kernel': takes an argument of type memref<8x32xf32, #tile.space<near>>: arguments are far buffers and numbers

// -----

tile.kernel @k() engines ["e", "f"] {
  %a = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %a engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  %z = arith.constant 0.0 : f32
}
// CHECK: error: 'tile.fill' uses the value of its operand 0 before that is defined

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %a engine "g" : f32 -> memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.fill': engine "g" is none of the engines of 'tile.kernel'

// -----

tile.kernel @k(%a : f32) engines ["e", "f"] {
  %b = arith.addf %a, %a : f32
}
// CHECK: error: 'arith.addf': does not belong in a tile program: it is made of scf, integer arith, tile and views of memref

// -----

tile.kernel @k(%a : memref<?xi32, #tile.space<far>>) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %t = tile.event_wait %a[%c0] until %c0 engine "e" : memref<?xi32, #tile.space<far>>
}
// CHECK: error: 'tile.event_wait': stands in a tile.kernel: tasks and events are there only in a tile.worker

// -----

tile.kernel @k(%a : i1) engines ["e", "f"] {
  scf.if %a {
    %r = tile.ring 2 x 64
  }
}
// CHECK: error: 'tile.ring': a ring is there as long as its program: it stands at the top level

// -----

tile.kernel @k(%a : i1) engines ["e", "f"] {
  scf.if %a {
    %b = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'memref.alloc': a buffer is there as long as its program: allocate at the top level, use tile.rotate in loops

// -----

tile.kernel @k() engines ["e", "f"] {
  %b = memref.alloc() : memref<8x32xf32>
}
// CHECK: error: 'memref.alloc': allocates memref<8x32xf32>: buffers are near or accumulator memory of a static shape

// -----

tile.kernel @k() engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %b = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a) -> (memref<8x32xf32, #tile.space<near>>) {
    scf.yield %x : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'scf.for': carries a memref<8x32xf32, #tile.space<near>>: buffers and tokens are named directly

// -----

tile.worker @k(%ev : memref<?xi32, #tile.space<far>>, %a : memref<?x32xf32, #tile.space<far>>) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  tile.event_signal %ev[%c0] after %a engine "e" : memref<?xi32, #tile.space<far>>, memref<?x32xf32, #tile.space<far>>
}
// CHECK: error: 'tile.event_signal': %a is written by nothing before this: the event would stand for no data

// -----

tile.worker @k(%a : memref<?x32xf32, #tile.space<far>>) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %n = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %v = memref.subview %a[%c0, 0] [8, 32] [1, 1] : memref<?x32xf32, #tile.space<far>> to memref<8x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>>
  tile.copy %v -> %n engine "e" : memref<8x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>> -> memref<8x32xf32, #tile.space<near>>
  tile.copy %n -> %v engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>>
}
// CHECK: error: 'tile.copy': reads %a, which tasks write, ahead of its event: take a token by `after`

// -----

tile.kernel @k(%a : memref<?x32xf32, #tile.space<far>>) engines ["e", "f"] {
  %v = memref.subview %a[0] [8] [1] : memref<?x32xf32, #tile.space<far>> to memref<8x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>>
}
// CHECK: error: 'memref.subview': takes offsets, sizes and strides, one for each of the 2 dimensions

// -----

tile.kernel @k(%a : memref<?x32xf32, #tile.space<far>>) engines ["e", "f"] {
  %v = memref.subview %a[0, 0] [8, 32] [1, 1] : memref<?x32xf32, #tile.space<far>> to memref<8x32xf32, strided<[16, 1]>, #tile.space<far>>
}
// CHECK: error: 'memref.subview': memref<8x32xf32, strided<[16, 1]>, #tile.space<far>> does not have the sizes [8, 32], the strides or the space of memref<?x32xf32, #tile.space<far>>

// -----

tile.kernel @k(%i : index) engines ["e", "f"] {
  %a = memref.alloc() : memref<8xi32, #tile.space<near>>
  %b = tile.rotate %a[%i] : memref<8xi32, #tile.space<near>> -> memref<8xi32, #tile.space<near>>
}
// CHECK: error: 'tile.rotate': memref<8xi32, #tile.space<near>> cannot rotate: slots are the first of two or more static dimensions

// -----

tile.kernel @k(%i : index) engines ["e", "f"] {
  %a = memref.alloc() : memref<2x8x32xf32, #tile.space<near>>
  %b = tile.rotate %a[%i] : memref<2x8x32xf32, #tile.space<near>> -> memref<8x8xf32, #tile.space<near>>
}
// CHECK: error: 'tile.rotate': a slot of memref<2x8x32xf32, #tile.space<near>> is memref<8x32xf32, #tile.space<near>>, not memref<8x8xf32, #tile.space<near>>

// -----

%a, %b = "test.op"() : () -> (memref<8x32xf32>, memref<8x32xf32, #tile.space<near>>)
tile.copy %a -> %b engine "e" : memref<8x32xf32> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.copy': the source of type memref<8x32xf32> names no space: it must be far or near or accumulator

// -----

%a, %b = "test.op"() : () -> (memref<?x32xf32, #tile.space<far>>, memref<?x32xf32, #tile.space<far>>)
tile.copy %a -> %b engine "e" : memref<?x32xf32, #tile.space<far>> -> memref<?x32xf32, #tile.space<far>>
// CHECK: error: 'tile.copy': copies from far to far memory: go through near memory

// -----

%a, %b = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x1xf32, #tile.space<near>>)
tile.copy %a -> %b engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x1xf32, #tile.space<near>>
// CHECK: error: 'tile.copy': the destination is 8x1: it must be 8x32

// -----

%a, %b = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xf16, #tile.space<near>>)
tile.copy %a -> %b engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf16, #tile.space<near>>
// CHECK: error: 'tile.copy': source and destination have element types f32 and f16: not the same

// -----

%a, %b = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>)
tile.copy %a -> %b engine "" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.copy': an instruction needs the name of its engine

// -----

%a, %r, %b = "test.op"() : () -> (memref<?x32xf32, #tile.space<far>>, memref<8xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>)
tile.gather %a[%r] -> %b engine "e" : memref<?x32xf32, #tile.space<far>>[memref<8xf32, #tile.space<near>>] -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.gather': row numbers are integers, not f32

// -----

%a, %r, %b = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8xi32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>)
tile.gather %a[%r] -> %b engine "e" : memref<8x32xf32, #tile.space<near>>[memref<8xi32, #tile.space<near>>] -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.gather': the source is in near memory: it must be far

// -----

%a, %r, %b = "test.op"() : () -> (memref<?x32xf32, #tile.space<far>>, memref<8xi32, #tile.space<near>>, memref<8x8xf32, #tile.space<near>>)
tile.gather %a[%r] -> %b engine "e" : memref<?x32xf32, #tile.space<far>>[memref<8xi32, #tile.space<near>>] -> memref<8x8xf32, #tile.space<near>>
// CHECK: error: 'tile.gather': the destination is 8x8: it must be 8x32

// -----

%a, %r, %b = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>>, memref<?x32xf32, #tile.space<far>>)
tile.scatter %a -> %b[%r] engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<?x32xf32, #tile.space<far>>[memref<8x32xi32, #tile.space<near>>]
// CHECK: error: 'tile.scatter': the list of rows is 8x32: it must have 1 dimensions

// -----

%a, %i = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, index)
%v = tile.value %a[%i, %i] engine "e" : memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.value': a value is an integer, not f32

// -----

%a, %b, %d = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, memref<8x8xf32, #tile.space<accumulator>>)
tile.matmul %a, %b -> %d engine "e" : memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>> -> memref<8x8xf32, #tile.space<accumulator>>
// CHECK: error: 'tile.matmul': lhs has 32 columns and rhs has 8 rows: they must be the same

// -----

%a, %b, %d = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<32x8xf32, #tile.space<near>>, memref<8x8xf32, #tile.space<near>>)
tile.matmul %a, %b -> %d engine "e" : memref<8x32xf32, #tile.space<near>>, memref<32x8xf32, #tile.space<near>> -> memref<8x8xf32, #tile.space<near>>
// CHECK: error: 'tile.matmul': the destination is in near memory: it must be accumulator

// -----

%a, %b, %d = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, memref<8x8xf32, #tile.space<accumulator>>)
tile.matmul %a, %b -> %d transpose_lhs engine "e" : memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>> -> memref<8x8xf32, #tile.space<accumulator>>
// CHECK: error: 'tile.matmul': the destination is 8x8: it must be 32x32

// -----

%a, %d = "test.op"() : () -> (memref<8x32xi32, #tile.space<near>>, memref<8x8xf32, #tile.space<accumulator>>)
tile.matmul %a, %a -> %d transpose_rhs engine "e" : memref<8x32xi32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>> -> memref<8x8xf32, #tile.space<accumulator>>
// CHECK: error: 'tile.matmul': products of i32 cannot be summed in f32

// -----

%d = "test.op"() : () -> (memref<8x8xf32, #tile.space<accumulator>>)
tile.matmul %d, %d -> %d engine "e" : memref<8x8xf32, #tile.space<accumulator>>, memref<8x8xf32, #tile.space<accumulator>> -> memref<8x8xf32, #tile.space<accumulator>>
// CHECK: error: 'tile.matmul': writes over the tile that it reads: it needs another destination

// -----

%a = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>)
tile.map add %a -> %a engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': add takes 2 operands, not 1

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, f32)
tile.map exp %x -> %a engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': no operand is a tile: use tile.fill, or arith on scalars

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, !tile.token)
tile.map add %a, %x -> %a engine "e" : memref<8x32xf32, #tile.space<near>>, !tile.token -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': an operand is a tile or a number, not !tile.token

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<?x32xf32, #tile.space<far>>)
tile.map exp %x -> %a engine "e" : memref<?x32xf32, #tile.space<far>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': an operand is in far memory: it must be near or accumulator

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<32x8xf32, #tile.space<near>>)
tile.map exp %x -> %a engine "e" : memref<32x8xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': an operand is 32x8: it does not broadcast to 8x32

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>>)
tile.map add %a, %x -> %a engine "e" : memref<8x32xf32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': operands are integers and floats: cast one of them first

// -----

%x = "test.op"() : () -> (memref<8x32xi32, #tile.space<near>>)
tile.map exp %x -> %x engine "e" : memref<8x32xi32, #tile.space<near>> -> memref<8x32xi32, #tile.space<near>>
// CHECK: error: 'tile.map': exp is a function of floats, not of i32

// -----

%a = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>)
tile.map lt %a, %a -> %a engine "e" : memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': lt writes i1, not f32

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>>)
tile.map add %x, %x -> %a engine "e" : memref<8x32xi32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.map': add of i32 cannot be written as f32: use cast

// -----

%a = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>)
tile.map erf %a -> %a engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: Expected `cast`, `neg`,

// -----

%a = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>)
tile.select %a, %a, %a -> %a engine "e" : memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.select': the mask holds f32: it must hold i1

// -----

%m, %a, %x = "test.op"() : () -> (memref<8x32xi1, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>>)
tile.select %m, %a, %x -> %a engine "e" : memref<8x32xi1, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, memref<8x32xi32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.select': selects i32 for a destination of f32

// -----

%a, %d = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x1xf32, #tile.space<near>>)
tile.reduce sum %a -> %d axis 2 engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x1xf32, #tile.space<near>>
// CHECK: error: 'tile.reduce': axis 2 of a tile of 2 dimensions

// -----

%a, %d = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x1xf32, #tile.space<near>>)
tile.reduce sum %a -> %d axis 0 engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x1xf32, #tile.space<near>>
// CHECK: error: 'tile.reduce': the destination is 8x1: it must be 1x32

// -----

%a, %d = "test.op"() : () -> (memref<8x32xi32, #tile.space<near>>, memref<8x1xf32, #tile.space<near>>)
tile.reduce sum %a -> %d axis 1 engine "e" : memref<8x32xi32, #tile.space<near>> -> memref<8x1xf32, #tile.space<near>>
// CHECK: error: 'tile.reduce': elements of i32 cannot be reduced to f32

// -----

%a, %d = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x1xf32, #tile.space<near>>)
tile.reduce sum of add %a -> %d axis 1 engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x1xf32, #tile.space<near>>
// CHECK: error: 'tile.reduce': add is no function of one element: it cannot be reduced

// -----

%a, %d = "test.op"() : () -> (memref<8x32xi32, #tile.space<near>>, memref<8x1xi32, #tile.space<near>>)
tile.reduce sum of exp %a -> %d axis 1 engine "e" : memref<8x32xi32, #tile.space<near>> -> memref<8x1xi32, #tile.space<near>>
// CHECK: error: 'tile.reduce': exp is a function of floats, not of i32

// -----

%a, %b = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>)
tile.transpose %a -> %b engine "e" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.transpose': the destination is 8x32: it must be 32x8

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, i32)
tile.fill %x -> %a engine "e" : i32 -> memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.fill': fills a tile of f32 with i32

// -----

%a, %x = "test.op"() : () -> (memref<8x32xi32, #tile.space<near>>, index)
tile.iota %x -> %a axis 2 engine "e" : memref<8x32xi32, #tile.space<near>>
// CHECK: error: 'tile.iota': axis 2 of a tile of 2 dimensions

// -----

%a, %x = "test.op"() : () -> (memref<8x32xf32, #tile.space<near>>, index)
tile.iota %x -> %a axis 1 engine "e" : memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.iota': counts in integers, not in f32

// -----

tile.kernel @k() engines ["e", "f"] {
  %r = tile.ring 0 x 64
}
// CHECK: error: 'tile.ring': a ring has one page or more, of one byte or more

// -----

%r = "test.op"() : () -> (!tile.ring)
%p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.acquire': the ring must be named directly, as the result of tile.ring

// -----

tile.kernel @k() engines ["e", "f"] {
  %r = tile.ring 2 x 64
  %p = tile.acquire %r : memref<?x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': memref<?x32xf32, #tile.space<near>>: a page has a static shape and an element type of whole bytes

// -----

tile.kernel @k() engines ["e", "f"] {
  %r = tile.ring 2 x 64
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': memref<8x32xf32, #tile.space<near>> takes 1024 bytes, and a page of the ring has 64

// -----

tile.kernel @k() engines ["e", "f"] {
  %a = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  tile.release %a : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.release': releases what is no page: pages come from tile.acquire or tile.held

// -----

%q, %d = "test.op"() : () -> (memref<?x16xi32, #tile.space<far>>, memref<8xi32, #tile.space<near>>)
tile.fetch %q -> %d engine "e" : memref<?x16xi32, #tile.space<far>> -> memref<8xi32, #tile.space<near>>
// CHECK: error: 'tile.fetch': the destination is 8: it must be 16

// -----

%d = "test.op"() : () -> (memref<8xf32, #tile.space<near>>)
%a = tile.scalars %d : memref<8xf32, #tile.space<near>> -> index
// CHECK: error: 'tile.scalars': a descriptor holds integers, not f32

// -----

%d = "test.op"() : () -> (memref<1xi32, #tile.space<near>>)
%a, %b = tile.scalars %d : memref<1xi32, #tile.space<near>> -> index, index
// CHECK: error: 'tile.scalars': takes 2 words of a descriptor of 1

// -----

%e, %i = "test.op"() : () -> (memref<8xf32, #tile.space<far>>, index)
%t = tile.event_wait %e[%i] until %i engine "e" : memref<8xf32, #tile.space<far>>
// CHECK: error: 'tile.event_wait': events count in integers, not in f32

// -----

%e, %i = "test.op"() : () -> (memref<?xi32, #tile.space<far>>, index)
"tile.event_signal"(%e, %i) <{engine = "e"}> : (memref<?xi32, #tile.space<far>>, index) -> ()
// CHECK: error: 'tile.event_signal': names no buffer after `after`: what does the event stand for?

// -----

%e, %i, %a = "test.op"() : () -> (memref<?xi32, #tile.space<far>>, index, memref<8x32xf32, #tile.space<near>>)
tile.event_signal %e[%i] after %a engine "e" : memref<?xi32, #tile.space<far>>, memref<8x32xf32, #tile.space<near>>
// CHECK: error: 'tile.event_signal': what the event guards is in near memory: it must be far

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': a page is filled by one engine, this one by none

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "f" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': a page is filled by one engine, this one by e, f

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': nothing reads this page

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.release': releases a page a second time

// -----

tile.kernel @k(%a : i1) engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  scf.if %a {
    tile.release %p : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.release': a page is released in the block that acquired it, whatever the branches in between do

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.copy': reads a page that "e" has not filled: first fill, then read, in statements of their own

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  scf.for %i = %c0 to %n step %c1 {
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.copy': reads a page that "e" has not filled

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.copy': uses a page after its release

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.map add %p, %z -> %p engine "e" : memref<8x32xf32, #tile.space<near>>, f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.map': reads this page before anything is in it

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': this page is never released

// -----

tile.kernel @k() engines ["e", "f", "g"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p : memref<8x32xf32, #tile.space<near>>
  %q = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %q engine "f" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %q -> %o engine "g" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %q : memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': "f" fills this page, and "e" others of the ring in the same kind of task

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  %q = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %q engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %q -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  %s = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %s engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %s -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %p, %q, %s : memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.acquire': 3 pages of the ring are live here and it has 2: whoever fills it waits for ever

// -----

tile.kernel @k() engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %c4 step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.acquire': 4 pages of the ring are live here and it has 2: whoever fills it waits for ever

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  %q = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %q engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.copy %q -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  tile.release %q, %p : memref<8x32xf32, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.release': releases a page before an older one of its ring, acquired at {{.*}}invalid.mlir:{{[0-9]+}}:3: release that one first

// -----

tile.kernel @k(%a : i1) engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.if %a {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.acquire': this page is not released in its region of 'scf.if'

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    %q = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %q engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %q -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.acquire': a loop keeps one page of a ring an iteration, no more

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.acquire': this page is never released

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %n step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.held': this page is never released

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.held': no earlier loop has kept pages of this ring

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %n step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf32, #tile.space<near>>
    %g = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %g -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %g : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.held': takes a second page in one iteration: the loop that kept them kept one

// -----

tile.kernel @k(%n : index, %m : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %m step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.held': stands in no loop of the same bounds as the one that kept the pages

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %n step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %h engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf32, #tile.space<near>>
  }
}
// CHECK: error: 'tile.held': "e" writes to a page that an earlier loop has filled

// -----

tile.kernel @k(%n : index, %b : i1) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.if %b {
  scf.for %i = %c0 to %n step %c1 {
    %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
    tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf32, #tile.space<near>>
  }
  }
}
// CHECK: error: 'scf.if': releases pages that a loop outside of it kept: 'scf.if' does not always run

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %h = tile.held %r : memref<8x32xf32, #tile.space<near>>
      tile.copy %h -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
      tile.release %h : memref<8x32xf32, #tile.space<near>>
    }
  }
}
// CHECK: error: 'scf.for': releases pages that a loop outside of it kept, in each of its iterations

// -----

tile.kernel @k(%n : index) engines ["e", "f"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %o = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  %r = tile.ring 2 x 1024
  scf.for %i = %c0 to %n step %c1 {
    %p = tile.acquire %r : memref<8x32xf32, #tile.space<near>>
    tile.fill %z -> %p engine "e" : f32 -> memref<8x32xf32, #tile.space<near>>
    tile.copy %p -> %o engine "f" : memref<8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  }
  scf.for %i = %c0 to %n step %c1 {
    %h = tile.held %r : memref<8x32xf16, #tile.space<near>>
    tile.map cast %h -> %o engine "f" : memref<8x32xf16, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
    tile.release %h : memref<8x32xf16, #tile.space<near>>
  }
}
// CHECK: error: 'tile.held': the page it holds was acquired as memref<8x32xf32, #tile.space<near>>

// -----

tile.kernel @k() engines ["e", "f"] {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %a engine "e" {label = "F"} : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.fill %z -> %a engine "e" {label = "F"} : f32 -> memref<8x32xf32, #tile.space<near>>
}
// CHECK: error: 'tile.fill': duplicate label @F

// -----

tile.kernel @k(%a : memref<?x32xf32, #tile.space<far>>) engines ["e", "f"] {
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [8, 32], strides: [32, 1] : memref<?x32xf32, #tile.space<far>> to memref<8x32xf16, #tile.space<far>>
}
// CHECK: error: 'memref.reinterpret_cast': memref<8x32xf16, #tile.space<far>> does not have the elements or the space of memref<?x32xf32, #tile.space<far>>

// -----

tile.kernel @k(%a : memref<?x32xf32, #tile.space<far>>) engines ["e", "f"] {
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [8, 32], strides: [64, 1] : memref<?x32xf32, #tile.space<far>> to memref<8x32xf32, #tile.space<far>>
}
// CHECK: error: 'memref.reinterpret_cast': memref<8x32xf32, #tile.space<far>> does not have the strides [64, 1]
