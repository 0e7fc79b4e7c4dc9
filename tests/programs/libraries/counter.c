/* Loaded at run time by loaded_library.c. */
__thread int counter = 100;
int shared_number = 1;

int count_up(int by) { return counter += by; }
