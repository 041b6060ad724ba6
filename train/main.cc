#include "train/worker_program.h"

int main(int argc, char** argv) { return remuda::train::run_worker(argc, argv); }
