// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// FaultMode is the way in which an action fails.
type FaultMode string

// Fault modes.
const (
	// FailWithoutEffect means that nothing is written and the caller gets an internal error.
	FailWithoutEffect FaultMode = "FailWithoutEffect"
	// FailAfterEffect means that the object is written and the caller gets a timeout.
	FailAfterEffect FaultMode = "FailAfterEffect"
	// Conflict means that nothing is written and the caller gets a conflict error.
	Conflict FaultMode = "Conflict"
	// Crash means that the object is written and the controller crashes. Every further action fails with ErrCrashed until
	// Faults.RestartController or Faults.Clear is called.
	Crash FaultMode = "Crash"
)

// ErrCrashed is the error of actions after a fault of mode Crash.
var ErrCrashed = errors.New("the controller crashed")

// Fault makes one action fail.
type Fault struct {
	// Verb and Kind select actions. An empty one matches every action.
	Verb olmcore.Verb
	Kind string
	// Nth selects the action by its number since the injection. 1 or 0 is the next action.
	Nth  int
	Mode FaultMode
}

// Faults injects failures into the actions of controllers (Cluster.Do).
type Faults struct {
	pending []Fault
	crashed bool
}

// Faults returns the injector of faults of the cluster.
func (c *Cluster) Faults() *Faults { return &c.faults }

// Inject adds a fault, which affects one action.
func (f *Faults) Inject(fault Fault) { f.pending = append(f.pending, fault) }

// Pending returns the faults that have not affected an action yet.
func (f *Faults) Pending() []Fault { return slices.Clone(f.pending) }

// Clear ends a crash and removes all pending faults.
func (f *Faults) Clear() { *f = Faults{} }

// Crashed reports whether a fault of mode Crash crashed the controller, and the controller has not restarted since.
func (f *Faults) Crashed() bool { return f.crashed }

// RestartController ends a crash. Pending faults stay.
func (f *Faults) RestartController() { f.crashed = false }

// do runs the write of an action, or makes it fail.
func (f *Faults) do(verb olmcore.Verb, target olmcore.Ref, resource schema.GroupResource, write func() error) error {
	if f.crashed {
		return ErrCrashed
	}
	if len(f.pending) == 0 {
		return write()
	}
	mode, injected := f.next(verb, target)
	if !injected {
		return write()
	}
	switch mode {
	case FailWithoutEffect:
		return apierrors.NewInternalError(fmt.Errorf("injected failure of %s %s", verb, target))
	case Conflict:
		return apierrors.NewConflict(resource, target.Name, store.ErrModified)
	case FailAfterEffect:
		if err := write(); err != nil {
			return err
		}
		return apierrors.NewTimeoutError(fmt.Sprintf("injected timeout of %s %s", verb, target), 1)
	case Crash:
		err := write()
		f.crashed = true
		return err
	default:
		return &olmcore.InputError{Field: "mode", Problem: fmt.Sprintf("is %q, which is no fault mode", mode)}
	}
}

// next counts an action against the pending faults, and removes and returns the fault that affects it.
func (f *Faults) next(verb olmcore.Verb, target olmcore.Ref) (mode FaultMode, injected bool) {
	for i := range f.pending {
		fault := &f.pending[i]
		if fault.Verb != "" && fault.Verb != verb || fault.Kind != "" && fault.Kind != target.Kind {
			continue
		}
		if fault.Nth > 1 {
			fault.Nth--
			continue
		}
		mode = fault.Mode
		f.pending = slices.Delete(f.pending, i, i+1)
		return mode, true
	}
	return "", false
}
