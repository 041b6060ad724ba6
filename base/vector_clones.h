// REMUDA_VECTOR_CLONES before a function: one copy of its loops per vector width, of which the program takes the widest
// that the processor has when it starts.
//
// Not with sanitizers, which run before that choice can be made, nor with clang, which makes no such copies of
// templates. Its file is compiled with -O3; where all copies must give the same bits and a product is added to
// something, with -ffp-contract=off, too: the wider ones have instructions that round such a pair once.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define REMUDA_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define REMUDA_VECTOR_CLONES
#endif
