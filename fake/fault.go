// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/olmcore"
)

// FaultMode says how an action goes wrong.
type FaultMode string

// Fault modes.
const (
	// FailWithoutEffect: the write is lost, the caller gets an internal error.
	FailWithoutEffect FaultMode = "FailWithoutEffect"
	// FailAfterEffect: the write is done, the caller gets a timeout.
	FailAfterEffect FaultMode = "FailAfterEffect"
	// Conflict: nothing is written, the caller is told that the object changed.
	Conflict FaultMode = "Conflict"
	// Crash: the write is done, and the controller dies before its next one: every
	// further action fails with ErrCrashed until Recover.
	Crash FaultMode = "Crash"
)

// ErrCrashed is what actions return after a fault of mode Crash.
var ErrCrashed = errors.New("the controller crashed")

// Fault makes one action go wrong.
type Fault struct {
	// Verb and Kind select actions; empty means any.
	Verb olmcore.Verb
	Kind string
	// Nth counts the selected actions from the injection on: 1, or 0, is the next.
	Nth  int
	Mode FaultMode
}

// Inject adds a fault. It strikes once.
func (c *Cluster) Inject(f Fault) { c.faults = append(c.faults, f) }

// Faults returns the faults that have not struck yet.
func (c *Cluster) Faults() []Fault { return slices.Clone(c.faults) }

// Recover ends a crash and drops all faults: from here on nothing goes wrong.
func (c *Cluster) Recover() {
	c.faults = nil
	c.crashed = false
}

// Crashed reports whether a fault of mode Crash struck without a restart of the controller yet.
func (c *Cluster) Crashed() bool { return c.crashed }

// RestartController ends a crash; faults that have not struck yet stay.
func (c *Cluster) RestartController() { c.crashed = false }

func (c *Cluster) withFaults(verb olmcore.Verb, target olmcore.Ref, write func() error) error {
	if c.crashed {
		return ErrCrashed
	}
	if len(c.faults) == 0 {
		return write()
	}
	mode, strikes := c.nextFault(verb, target)
	if !strikes {
		return write()
	}
	switch mode {
	case FailWithoutEffect:
		return apierrors.NewInternalError(fmt.Errorf("injected failure of %s %s", verb, target))
	case Conflict:
		resource := c.resourceOf(target)
		return apierrors.NewConflict(resource, target.Name, errModified)
	case FailAfterEffect:
		if err := write(); err != nil {
			return err
		}
		return apierrors.NewTimeoutError(fmt.Sprintf("injected timeout of %s %s", verb, target), 1)
	case Crash:
		err := write()
		c.crashed = true
		return err
	default:
		return &olmcore.InputError{Field: "mode", Problem: fmt.Sprintf("is %q, which is no fault mode", mode)}
	}
}

// nextFault counts an action against the faults and removes the one that strikes.
func (c *Cluster) nextFault(verb olmcore.Verb, target olmcore.Ref) (FaultMode, bool) {
	for i := range c.faults {
		f := &c.faults[i]
		if f.Verb != "" && f.Verb != verb || f.Kind != "" && f.Kind != target.Kind {
			continue
		}
		if f.Nth > 1 {
			f.Nth--
			continue
		}
		mode := f.Mode
		c.faults = slices.Delete(c.faults, i, i+1)
		return mode, true
	}
	return "", false
}
