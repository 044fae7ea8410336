// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/pprof"
	"sync"
)

// profileCPU begins to write what the processor does to a file, if one is named and this size is the last; stop ends
// it, and may be called again.
func profileCPU(path string, last bool) (stop func(), err error) {
	if path == "" || !last {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		pprof.StopCPUProfile()
		f.Close()
	}), nil
}

// profile writes what is held.
func (m *measurement) profile() error {
	if m.heapProfile == "" {
		return nil
	}
	f, err := os.Create(m.heapProfile)
	if err != nil {
		return err
	}
	if err := pprof.WriteHeapProfile(f); err != nil {
		return err
	}
	return f.Close()
}
