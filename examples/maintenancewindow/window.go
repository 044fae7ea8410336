// SPDX-License-Identifier: Apache-2.0

// Package maintenancewindow approves InstallPlans in maintenance windows, and holds upgrades that gain permissions: an
// operator of one's own that embeds the library.
package maintenancewindow

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is that of a MaintenanceWindow. It belongs to the cluster, so that no right in a namespace reaches it.
var Kind = schema.GroupVersionKind{Group: "maintenance.example.com", Version: "v1alpha1", Kind: "MaintenanceWindow"}

// Spec says when which InstallPlans are approved; config/crd.yaml says what each field means.
type Spec struct {
	Schedule         string            `json:"schedule"`
	TimeZone         string            `json:"timeZone,omitempty"`
	Duration         metav1.Duration   `json:"duration"`
	Namespaces       []string          `json:"namespaces,omitempty"`
	Subscriptions    map[string]string `json:"subscriptions,omitempty"`
	AllowPermissions bool              `json:"allowPermissions,omitempty"`
}

// Status says why a window cannot be used, and what waits for it; OpensAt is set when that is for the window to open.
type Status struct {
	ObservedGeneration int64        `json:"observedGeneration,omitempty"`
	Problem            string       `json:"problem,omitempty"`
	OpensAt            *metav1.Time `json:"opensAt,omitempty"`
	Waiting            []Waiting    `json:"waiting,omitempty"`
}

// Waiting says why an InstallPlan is not approved.
type Waiting struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// window is what a MaintenanceWindow says.
type window struct {
	Status Status        `json:"status"` // before the spec, so that it is read where that cannot be
	Spec   Spec          `json:"spec"`
	Times  cron.Schedule `json:"-"`
}

var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// read decodes a MaintenanceWindow. It says what of its spec cannot be used.
func read(o *unstructured.Unstructured, now time.Time) (w window, problem string) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &w)
	if err != nil {
		return w, "it cannot be decoded: " + err.Error()
	}
	w.Times, err = fiveFields.Parse("CRON_TZ=" + w.Spec.TimeZone + " " + w.Spec.Schedule)
	switch {
	case err != nil:
		return w, "spec.schedule or spec.timeZone: " + err.Error()
	case w.next(now).IsZero():
		return w, fmt.Sprintf("spec.schedule: %q never comes", w.Spec.Schedule)
	case w.Spec.Duration.Duration <= 0:
		return w, fmt.Sprintf("spec.duration: %s is no time at all", w.Spec.Duration.Duration)
	}
	return w, ""
}

// next is when the window opens after t, zero for not within five years. Clocks that leave out midnight lead cron to a
// day that is not the schedule's: from the second before it does not find that again.
func (w window) next(t time.Time) time.Time {
	at := w.Times.Next(t)
	for !at.IsZero() && !w.Times.Next(at.Add(-time.Second)).Equal(at) {
		at = w.Times.Next(at)
	}
	return at
}

// isOpen reports whether the window opened at t or before, and is not over.
func (w window) isOpen(t time.Time) bool {
	at := w.next(t.Add(-w.Spec.Duration.Duration))
	return !at.IsZero() && !at.After(t)
}
