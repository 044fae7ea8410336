// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// spent is time on the clock, and of the processors: that of all threads of this process in user and in system mode,
// the garbage collector's among them. The latter says what work costs while others use the machine, too.
type spent struct {
	Wall      time.Duration `json:"wallNanoseconds"`
	Processor time.Duration `json:"processorNanoseconds"`
}

var epoch = time.Now()

// now is what was spent until now; only differences mean something.
func now() spent { return spent{time.Since(epoch), processor()} }

func (s spent) minus(o spent) spent { return spent{s.Wall - o.Wall, s.Processor - o.Processor} }
func (s spent) plus(o spent) spent  { return spent{s.Wall + o.Wall, s.Processor + o.Processor} }
