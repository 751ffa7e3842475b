package main

import (
	"fmt"
	"os"
	"syscall"
)

// touchMemory writes to every page of so many bytes and gives them back, so
// that the host of a virtual machine has provided them before anything is
// measured.
func touchMemory(bytes int64) error {
	if bytes == 0 {
		return nil
	}
	progress("touching %d MB of memory", bytes>>20)
	b, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("touching %d bytes of memory: %w", bytes, err)
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	return syscall.Munmap(b)
}
