// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Input contains everything that Reconcile reads. Reconcile does not modify it. Only Observations must have a certain
// order.
type Input struct {
	// Now is the time of this call. It is required.
	Now time.Time
	// Namespace is the namespace of the Subscriptions and of all other objects except Catalogs. It is required.
	Namespace string
	// Subscriptions contains all Subscriptions of the namespace, from one list. Subscriptions, InstallPlans,
	// ClusterServiceVersions and OperatorGroups are required and must be complete.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// InstallPlans contains all InstallPlans of the namespace, from one list.
	InstallPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// ClusterServiceVersions contains these CSVs of the namespace, which Gather reads:
	//   - the CSVs that a Subscription names in status.currentCSV or status.installedCSV
	//   - the CSV in spec.startingCSV of a Subscription that an InstallPlan created
	//   - the CSVs that may have replaced a missing CSV
	//   - the CSVs that an InstallPlan may have installed for a Subscription
	//
	// The list may also contain other CSVs of the namespace.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// OperatorGroups contains all OperatorGroups of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// PreviousPackages maps the UID of a Subscription to the packages that the Subscription followed before its spec.name
	// changed. The component labels of these packages are removed. The caller must not change the map after the call.
	// Optional.
	PreviousPackages map[types.UID][]string
	// Components contains the objects that need the component labels of their CSVs. An object may be a
	// *metav1.PartialObjectMetadata. The list may be incomplete. Optional.
	Components []olmcore.Object

	// Catalogs contains the observed catalogs of the namespace. GatherCatalogs reads them. If Catalogs is nil,
	// status.catalogHealth and the conditions about catalogs and deprecation are not changed. Optional.
	Catalogs *Catalogs

	// Resolution is the last answer to a ResolveRequest, or nil. Pass the same answer until the inputs of the resolution
	// change, such as the catalogs or the existing ClusterServiceVersions. Optional.
	Resolution *Resolved
	// Live means that InstallPlans was read from the API server and not from a cache. If Live is true, an InstallPlan that
	// is not in the list does not exist. Optional.
	Live bool
	// SeparatePlans means that the caller creates an InstallPlan for each set of Subscriptions that depend on each other,
	// as installplan.Config.SeparatePlans demands. If Subscriptions of several sets wait for one InstallPlan that has not
	// started, the namespace is resolved again. The new InstallPlans of the sets then supersede the shared one. Optional.
	SeparatePlans bool
	// Observations contains the versions of this namespace's InstallPlans that a watch or a direct read delivered, in the
	// order in which they arrived. The versions of one InstallPlan are ordered by their resourceVersions, or by their
	// arrival if those cannot be compared.
	//
	// The list must contain the versions since the last call, and may contain earlier ones. It may contain older and newer
	// versions than InstallPlans. Without Observations, stages between two calls may be reported with less certainty.
	// Optional.
	Observations []Observation
	// Histories contains the History of each Subscription, by the UID of the Subscription. The entries come from
	// Outcome.Histories of earlier calls. A caller that keeps no histories sets Histories to nil. Each transition is then
	// reported at least once, instead of exactly once. Optional.
	Histories map[types.UID]History
	// Config contains the choices of the embedder. The zero value selects OLM's behaviour.
	Config Config
	// Checkpoint is the Outcome.Checkpoint of an earlier call for this namespace. It is optional.
	Checkpoint *olmcore.Checkpoint
}

// Observation is one version of an InstallPlan that a watch or a direct read delivered.
type Observation struct {
	// At is the time at which the version was observed.
	At time.Time
	// Plan is the observed version. If Deleted is true, only the name and the UID of Plan are needed. The caller must not
	// change Plan.
	Plan *v1alpha1.InstallPlan
	// Deleted means that the InstallPlan with this UID does not exist any more.
	Deleted bool
}

// Resolved is the answer to a ResolveRequest. The caller must not change the objects that a Resolved references after
// passing it to Reconcile.
type Resolved struct {
	Resolution olmcore.Resolution
	// PlanProgress describes the one InstallPlan of the resolution. It is ignored if there are Parts.
	PlanProgress
	// Parts contains the sets of Subscriptions that have separate InstallPlans; see Input.SeparatePlans. A Subscription
	// may be in one Part only. The resolution installs nothing for a Subscription that is in no Part. Optional.
	Parts []Part
	// At is the time at which the resolution ended. Attempts is the number of consecutive attempts that failed to resolve,
	// to unpack a bundle, or to write the InstallPlan. At and Attempts determine the time of the next attempt. If At is
	// zero, a failed attempt is retried only after a call in which Input.Resolution is nil. Optional.
	At       time.Time
	Attempts int
}

// Part is one set of Subscriptions with a separate InstallPlan.
type Part struct {
	// Subscriptions contains the names of the Subscriptions.
	Subscriptions []string
	PlanProgress
}

// PlanProgress describes the progress of creating the InstallPlan of a resolution, or of one of its Parts.
type PlanProgress struct {
	// Plan is the InstallPlan that was created or found for the resolution. It is zero if there is nothing to install or
	// if the InstallPlan does not exist yet. If Plan has no UID, its name identifies the InstallPlan.
	Plan olmcore.Ref
	// Unpacking describes the progress of unpacking the bundles of the resolution. It is nil if no bundle must be
	// unpacked. Optional.
	Unpacking *Unpacking
	// PlanError is the error that occurred when the InstallPlan from create.Plan was written. It is empty if there was no
	// error. Optional.
	PlanError string
	// PlanRefused is the reason why create.Plan creates no InstallPlan from the resolution. The condition
	// BundleUnpackFailed reports this reason. PlanRefused is zero if there is no such reason. Optional.
	PlanRefused olmcore.Cause
}

// Unpacking describes the progress of unpacking the bundle images of a resolution.
type Unpacking struct {
	// Lookups contains the bundles that had to be unpacked, as in an InstallPlan's status.bundleLookups. If the condition
	// BundleLookupFailed is True, unpacking failed. If BundleLookupPending is True, unpacking has not
	// finished.
	Lookups []v1alpha1.BundleLookup
	// Failure is the reason why no bundle can be unpacked. It is nil if there is no such reason. If Failure is not
	// Transient, unpacking is retried only after the input changes.
	Failure *olmcore.ResolutionFailure
}

// DefaultMissingGrace is the default of Config.MissingGrace.
const DefaultMissingGrace = 10 * time.Second

// AuditGrace is how long an inconsistency between objects may last before it is reported or repaired.
const AuditGrace = relation.Grace

// Config contains the choices of an embedder. A field that is zero has the documented default. A negative duration is
// an *olmcore.InputError.
type Config struct {
	// MissingGrace is the time for which a cache may be stale. A referenced InstallPlan that is not visible for this time
	// is reported as missing. Until then, it is read again every second. 0 selects DefaultMissingGrace.
	MissingGrace time.Duration `json:"missingGrace,omitempty"`
	// ReinstallMissingCSV means that an operator is installed again if its installed CSV was deleted. After AuditGrace,
	// the Subscription's reference to the InstallPlan is cleared. If ReinstallMissingCSV is false, the Subscription stays
	// UpgradePending, as in OLM, and a Diagnostic reports the missing CSV.
	ReinstallMissingCSV bool `json:"reinstallMissingCSV,omitempty"`
	// SkipComponents means that Gather does not read the objects of the installed operators. Only Subscriptions and
	// ClusterServiceVersions then get component labels.
	SkipComponents bool `json:"skipComponents,omitempty"`
}

// Validate returns an *olmcore.InputError if a duration is negative, and otherwise nil. The Field of the error begins
// with "Config.".
func (c Config) Validate() error {
	if c.MissingGrace < 0 {
		return &olmcore.InputError{Field: "Config.MissingGrace", Problem: "is negative"}
	}
	return nil
}

// lists visits every list that must be read completely.
func (in *Input) lists(v *inputs.ListVisit) {
	here := inputs.InNamespace(in.Namespace)
	inputs.VisitList(v, "Subscriptions", &in.Subscriptions, inputs.Required, here, inputs.Writable)
	inputs.VisitList(v, "InstallPlans", &in.InstallPlans, inputs.Required, here)
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Required, here)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Required, here)
	if in.Catalogs != nil {
		inputs.VisitList(v, "Catalogs.Sources", &in.Catalogs.Sources, inputs.Required, hasNamespace)
	}
}

// hasNamespace is the inputs.Check that an object has a namespace.
func hasNamespace(o olmcore.Object) (field, problem string) {
	if o.GetNamespace() == "" {
		return ".metadata.namespace", "is empty"
	}
	return "", ""
}

// cover passes each field of the Input to a Checkpoint. Of the operators of a resolution, it passes only whether there
// are any, because package installplan installs them.
func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	checkpoint.CoverValue(&c, in.Namespace)
	checkpoint.CoverValue(&c, in.Catalogs != nil)
	visit := inputs.CoverLists(c)
	in.lists(&visit)
	c = visit.Coverage()
	checkpoint.CoverFunc(&c, in.PreviousPackages, func(a, b map[types.UID][]string) bool {
		return maps.EqualFunc(a, b, slices.Equal[[]string])
	})
	checkpoint.CoverObjects(&c, in.Components, true)
	if in.Catalogs != nil {
		in.Catalogs.cover(&c)
	}
	checkpoint.CoverValue(&c, in.Resolution != nil)
	if in.Resolution != nil {
		in.Resolution.cover(&c)
	}
	checkpoint.CoverValue(&c, in.Live)
	checkpoint.CoverValue(&c, in.SeparatePlans)
	checkpoint.CoverValues(&c, in.Observations)
	checkpoint.CoverValue(&c, in.Histories != nil)
	checkpoint.CoverMap(&c, in.Histories)
	checkpoint.CoverValue(&c, in.Config)
	return c
}

func (r *Resolved) cover(c *checkpoint.Coverage) {
	checkpoint.CoverValues(c, r.Resolution.Observed)
	checkpoint.CoverValue(c, len(r.Resolution.Operators) > 0)
	checkpoint.CoverFunc(c, r.Resolution.Decisions, func(a, b []olmcore.SubscriptionDecision) bool {
		return slices.EqualFunc(a, b, isSameDecision)
	})
	checkpoint.CoverFunc(c, r.Resolution.Failure, isSameFailure)
	checkpoint.CoverFunc(c, r.At, time.Time.Equal)
	checkpoint.CoverValue(c, r.Attempts)
	r.PlanProgress.cover(c)
	checkpoint.CoverValue(c, len(r.Parts))
	for i := range r.Parts {
		checkpoint.CoverValues(c, r.Parts[i].Subscriptions)
		r.Parts[i].cover(c)
	}
}

func (p *PlanProgress) cover(c *checkpoint.Coverage) {
	checkpoint.CoverValue(c, p.Plan)
	checkpoint.CoverValue(c, p.PlanError)
	checkpoint.CoverValue(c, p.PlanRefused)
	checkpoint.CoverValue(c, p.Unpacking != nil)
	if p.Unpacking != nil {
		checkpoint.CoverFunc(c, p.Unpacking.Failure, isSameFailure)
		checkpoint.CoverFunc(c, p.Unpacking.Lookups, func(a, b []v1alpha1.BundleLookup) bool {
			return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
		})
	}
}

func isSameDecision(a, b olmcore.SubscriptionDecision) bool {
	return a.Name == b.Name && a.CurrentCSV == b.CurrentCSV && a.Changed == b.Changed && isSameFailure(a.Failure, b.Failure)
}

func isSameFailure(a, b *olmcore.ResolutionFailure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// validate returns an *olmcore.InputError if the Input breaks the contract.
func (in *Input) validate() error {
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.Namespace == "":
		return &olmcore.InputError{Field: "Namespace", Problem: "is empty"}
	case in.Resolution != nil && in.Resolution.Attempts < 0:
		return &olmcore.InputError{Field: "Resolution.Attempts", Problem: "is negative"}
	}
	visit := inputs.ValidateLists()
	in.lists(&visit)
	return cmp.Or(
		in.Config.Validate(), visit.Err(), relation.ValidateNames("Components", in.Components), in.validateObservations(),
		in.Resolution.validate(),
	)
}

func (in *Input) validateObservations() error {
	for i := range in.Observations {
		if in.Observations[i].Plan == nil {
			return &olmcore.InputError{Field: fmt.Sprintf("Observations[%d].Plan", i), Problem: "is nil"}
		}
	}
	return nil
}

// validate returns an *olmcore.InputError if a Subscription has two decisions or is in two Parts. r may be nil.
func (r *Resolved) validate() error {
	if r == nil {
		return nil
	}
	decided, hasPart := map[string]bool{}, map[string]bool{}
	for _, d := range r.Resolution.Decisions {
		if decided[d.Name] {
			return &olmcore.InputError{Field: "Resolution.Resolution.Decisions", Problem: "contains " + d.Name + " twice"}
		}
		decided[d.Name] = true
	}
	for i, p := range r.Parts {
		for _, name := range p.Subscriptions {
			if hasPart[name] {
				field := fmt.Sprintf("Resolution.Parts[%d].Subscriptions", i)
				return &olmcore.InputError{Field: field, Problem: "contains " + name + ", which is already in a part"}
			}
			hasPart[name] = true
		}
	}
	return nil
}
