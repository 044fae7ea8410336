// SPDX-License-Identifier: Apache-2.0

// Package report holds what `kubectl olm` prints with -o json and -o yaml, as Go types: decode its output into them.
// The names of the fields do not change, none is left out, and what is not known is empty or null.
//
//	kubectl olm why etcd -o json        Report
//	kubectl olm status -o json          Status
//	kubectl olm audit -o json           Audit
//	kubectl olm catalog -o json         Catalogs
//	kubectl olm path --preview -o json  Hops
package report

import (
	"time"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/subscription/health"
)

// Report says where an object stands, and what blocks it.
type Report struct {
	// Phase is one of package health for a Subscription, the object's own for others, Unknown when it cannot be told.
	Phase string `json:"phase"`
	// Reason is a word in CamelCase, Message a sentence; both may be empty when all is well.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Object is the one that Reason and Message are about, which need not be the one that was asked for; nil for none.
	Object *Object `json:"object"`
	// Since is the time, in UTC, from which the objects say so; nil when they do not say.
	Since *time.Time `json:"since"`
	// Advice is what a person can do; empty when there is nothing but to wait, or nothing to do.
	Advice string `json:"advice"`
}

// Object names an object. Namespace is empty for one that is in none.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// Unknown is the Phase of what cannot be told, as objects were not read or are not valid; Reason says which of both,
// NotRead or InvalidInput, and Message what it is about.
const Unknown = "Unknown"

// Reasons of Unknown.
const (
	NotRead      = "NotRead"
	InvalidInput = "InvalidInput"
)

// New returns what package health says of a Subscription.
func New(h health.Health) Report {
	return Report{
		Phase: string(h.Phase), Reason: h.Reason, Message: h.Message, Object: ObjectOf(h.Object), Since: At(h.Since), Advice: h.Advice,
	}
}

// ObjectOf returns the name of what a Ref names, nil for none.
func ObjectOf(r olmcore.Ref) *Object {
	if r.Kind == "" {
		return nil
	}
	return &Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// At returns a time in UTC, nil for the zero time.
func At(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Healthy reports whether nothing is left to do or to wait for: a Subscription is Installed, an InstallPlan Complete, a
// ClusterServiceVersion Succeeded, a CatalogSource READY.
func (r Report) Healthy() bool {
	switch r.Phase {
	case string(health.Installed), "Complete", "Succeeded", "READY":
		return true
	}
	return false
}

// Subscription is where one Subscription stands.
type Subscription struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	// Channel is empty for the default one.
	Channel string `json:"channel"`
	// Version is that of InstalledCSV, empty when nothing is installed. CurrentCSV is what is being installed, or the
	// same.
	Version      string `json:"version"`
	InstalledCSV string `json:"installedCSV"`
	CurrentCSV   string `json:"currentCSV"`
	Report
}

// Status is where Subscriptions stand.
type Status struct {
	// Now is the time for which it is said, in UTC.
	Now     time.Time `json:"now"`
	Summary Summary   `json:"summary"`
	// Subscriptions are sorted by namespace and name, unless --sort-by says otherwise.
	Subscriptions []Subscription `json:"subscriptions"`
	// NotRead are the kinds that were not read, by their names for kubectl get, sorted.
	NotRead []string `json:"notRead"`
}

// Summary counts Subscriptions.
type Summary struct {
	Total int `json:"total"`
	// Phases has the number of each phase that occurs.
	Phases map[string]int `json:"phases"`
}

// Audit is what does not fit together or was left behind.
type Audit struct {
	// Findings are sorted by namespace, object and reason.
	Findings []Finding `json:"findings"`
	NotRead  []string  `json:"notRead"`
}

// Finding is one thing that an audit found.
type Finding struct {
	// Severity is Info, Warning or Error.
	Severity string `json:"severity"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Object   Object `json:"object"`
	// Path is the field that it is about, empty for the whole object.
	Path string `json:"path"`
	// Source is who found it: subscription, installplan or csv, each by the package of the library that it comes from:
	// subscription/audit, installplan/sweep, csv/sweep.
	Source string `json:"source"`
	// Repair is what would end it, as "VERB OBJECT"; empty where a person has to decide.
	Repair []string `json:"repair"`
}

// Catalogs is what catalogs offer.
type Catalogs struct {
	Packages []Package `json:"packages"`
	// NotRead are the catalogs whose content is not known, and why.
	NotRead []string `json:"notRead"`
}

// Package is one package of one catalog.
type Package struct {
	// Catalog is NAMESPACE/NAME of the CatalogSource.
	Catalog        string    `json:"catalog"`
	Name           string    `json:"name"`
	DefaultChannel string    `json:"defaultChannel"`
	Deprecation    string    `json:"deprecation"`
	Channels       []Channel `json:"channels"`
}

// Channel is one channel of a package.
type Channel struct {
	Name string `json:"name"`
	// Head is what is installed from it.
	Head        string `json:"head"`
	Version     string `json:"version"`
	Deprecation string `json:"deprecation"`
	// Entries are all versions, the newest first.
	Entries []Entry `json:"entries"`
}

// Entry is one version in a channel.
type Entry struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Deprecation string `json:"deprecation"`
	// Replaces, Skips and SkipRange are from which versions it upgrades; empty where the content of the catalog is known
	// from PackageManifests alone.
	Replaces  string   `json:"replaces"`
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
}

// Hops is what each approval for a Subscription would do, one after another.
type Hops struct {
	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription"`
	// Hops are in the order in which they come; none where nothing newer is offered. The last one may have Blocked: what
	// comes after it is not known then.
	Hops []preview.Preview `json:"hops"`
	// NotRead are the kinds that were not read, by their kinds, sorted: what depends on them is told as if there were
	// none.
	NotRead []string `json:"notRead"`
}
