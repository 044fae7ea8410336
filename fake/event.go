// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Event is one thing that a Driver's controller did or said. Exactly one of Action, Transition and Diagnostic is set.
type Event struct {
	At         time.Time
	Controller string
	Key        types.NamespacedName
	Action     olmcore.Action
	// Err is the error of the action; nil when it was done, or had been before.
	Err        error
	Transition *olmcore.Transition
	Diagnostic *olmcore.Diagnostic
}

// String returns the event as one line, without its time:
//
//	catalog olm/cool: create Pod olm/cool-7d9c4 (PodMissing)
//	catalog olm/cool: delete Pod olm/cool-7d9c4 uid=3 grace=0 (NodeNotReady)
//	catalog olm/cool: CONNECTING -> READY (PodReady)
//	catalog olm/cool: Warning NodeSilent: node a does not answer
//
// A failed action ends in "failed: " and the message; a Transition with a type shows it in front, one that was not
// observed ends in its certainty, and an empty state is shown as "none".
func (e Event) String() string {
	who := e.Controller + " " + keyString(e.Key) + ": "
	switch {
	case e.Action != nil:
		return who + actionString(e.Action) + failure(e.Err)
	case e.Transition != nil:
		return who + e.Transition.String()
	case e.Diagnostic != nil:
		return fmt.Sprintf("%s%s %s: %s", who, e.Diagnostic.Severity, e.Diagnostic.Reason, e.Diagnostic.Message)
	}
	return who + "nothing"
}

func actionString(a olmcore.Action) string {
	verb, target, cause := a.Describe()
	name := string(verb)
	if verb == olmcore.VerbUpdateStatus {
		name = "update status of"
	}
	text := name + " " + target.String()
	if d, ok := a.(olmcore.Delete); ok {
		text += " uid=" + string(target.UID)
		if d.GracePeriodSeconds != nil {
			text += fmt.Sprintf(" grace=%d", *d.GracePeriodSeconds)
		}
		if d.PropagationPolicy != "" {
			text += " " + strings.ToLower(string(d.PropagationPolicy))
		}
	}
	if as := a.Identity(); as != nil {
		text += " as " + as.Namespace + "/" + as.Name
	}
	return text + " (" + cause.Reason + ")"
}

func failure(err error) string {
	if err == nil {
		return ""
	}
	return " failed: " + err.Error()
}

// Format returns events as lines with their virtual time in front.
func Format(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s  %s\n", e.At.Format("15:04:05"), e)
	}
	return b.String()
}

func keyString(key types.NamespacedName) string {
	switch {
	case key.Namespace == "":
		return key.Name
	case key.Name == "":
		return key.Namespace
	}
	return key.Namespace + "/" + key.Name
}

// recorder runs a controller's actions and records them, until AfterAction stops it.
type recorder struct {
	driver     *Driver
	controller *Controller
	key        types.NamespacedName
	stop       error
}

// Do implements olmcore.Executor.
func (r *recorder) Do(ctx context.Context, a olmcore.Action) error {
	if r.stop != nil {
		return r.stop
	}
	err := r.driver.Cluster.Do(ctx, a)
	e := Event{At: r.driver.Cluster.Now(), Controller: r.controller.Name, Key: r.key, Action: a, Err: err}
	switch a.(type) {
	case olmcore.Create:
		if apierrors.IsAlreadyExists(err) {
			e.Err = nil
		}
	case olmcore.Delete:
		if apierrors.IsNotFound(err) {
			e.Err = nil
		}
	}
	r.driver.Events = append(r.driver.Events, e)
	if after := r.driver.AfterAction; after != nil {
		if stop := after(e); stop != nil {
			r.stop = fmt.Errorf("after %q: %w", e, stop)
		}
	}
	return err
}

// say records transitions, and those diagnostics that the last result for the key did not have.
func (d *Driver) say(c *Controller, key types.NamespacedName, m *keyMemory, result olmcore.Result) {
	for i := range result.Transitions {
		d.Events = append(d.Events, Event{At: d.Cluster.Now(), Controller: c.Name, Key: key, Transition: &result.Transitions[i]})
	}
	var said []string
	for i := range result.Diagnostics {
		e := Event{At: d.Cluster.Now(), Controller: c.Name, Key: key, Diagnostic: &result.Diagnostics[i]}
		said = append(said, e.String())
		if !slices.Contains(m.said, e.String()) {
			d.Events = append(d.Events, e)
		}
	}
	m.said = said
}

// isNotFound reports whether an error, or one that it wraps, is the API server's NotFound for an object.
func isNotFound(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err)
}
