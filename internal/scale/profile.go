// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/pprof"
	"sync"
)

// profileStart begins to write what the processor does, if that is asked for and this size is the last; stop ends it,
// and may be called again.
func (m *measurement) profileStart(last bool) (stop func(), err error) {
	if m.cpuProfile == "" || !last {
		return func() {}, nil
	}
	f, err := os.Create(m.cpuProfile)
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
