// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// UnpackInput is everything that Unpack looks at. GatherUnpack fills all but Now.
// All objects are of the namespace of the lookup's CatalogSource and have the
// lookup's computed name, unless it is said otherwise; nil when there is none.
type UnpackInput struct {
	// Now is required.
	Now time.Time
	// Lookup says which bundle to unpack. Its path and the namespace and name of
	// its catalogSourceRef are required.
	Lookup         v1alpha1.BundleLookup
	CatalogSource  *v1alpha1.CatalogSource // the one that the lookup refers to
	ConfigMap      *corev1.ConfigMap
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
	ServiceAccount *corev1.ServiceAccount
	// Jobs are those with the label of the bundle, and the one of its name.
	Jobs []*batchv1.Job
	// Pods are those of the Jobs.
	Pods []*corev1.Pod
	// OperatorGroups of the namespace that the bundle is unpacked for. Their
	// annotations tune the time limits.
	OperatorGroups []*operatorsv1.OperatorGroup
	Config         Config
}

// UnpackOutcome is what Unpack asks for and what became of the lookup.
type UnpackOutcome struct {
	olmcore.Result
	// Lookup is the input's with the conditions that hold now.
	Lookup v1alpha1.BundleLookup
	// Bundle is what was unpacked, with the lookup's properties; nil until then.
	Bundle *olmcore.Bundle
	// Digest identifies the content of Bundle.
	Digest string
}

// lookupNotPersisted: the bundle's steps are in no plan yet.
const lookupNotPersisted v1alpha1.BundleLookupConditionType = "BundleLookupNotPersisted"

// Texts of the conditions of a lookup.
const (
	messageNotPersisted  = "bundle contents have not yet been persisted to installplan status"
	messageNotStarted    = "unpack job not yet started"
	messageNotCompleted  = "unpack job not completed"
	messageSourceMissing = "referenced catalogsource not found"
	reasonNotUnpacked    = "BundleNotUnpacked"
	reasonNotStarted     = "JobNotStarted"
	reasonIncomplete     = "JobIncomplete"
	reasonSourceMissing  = "CatalogSourceMissing"
)

// NewLookup returns the lookup of an operator's bundle image, as it is before
// anything is unpacked.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, ResolveSteps.
func NewLookup(o olmcore.Operator, now time.Time) (v1alpha1.BundleLookup, error) {
	properties, err := propertiesOf(o.Bundle.Properties)
	if err != nil {
		return v1alpha1.BundleLookup{}, &olmcore.InputError{Field: "Operator.Bundle.Properties", Problem: err.Error()}
	}
	return v1alpha1.BundleLookup{
		Path: o.Bundle.Image, Identifier: o.Name, Replaces: o.Replaces, Properties: properties,
		CatalogSourceRef: &corev1.ObjectReference{Namespace: o.Catalog.Namespace, Name: o.Catalog.Name},
		Conditions:       notUnpackedAt(now),
	}, nil
}

// notUnpackedAt are the conditions of a lookup of which nothing is known yet.
func notUnpackedAt(now time.Time) []v1alpha1.BundleLookupCondition {
	at := olmcore.Timestamp(now)
	return []v1alpha1.BundleLookupCondition{
		{Type: lookupNotPersisted, Status: corev1.ConditionTrue, Reason: reasonNotUnpacked,
			Message: messageNotPersisted, LastTransitionTime: &at},
		{Type: v1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: reasonNotStarted,
			Message: messageNotStarted, LastTransitionTime: &at},
	}
}

// Unpack takes the lookup of one bundle image a round further: a Job extracts the
// image's files into a ConfigMap, under a ServiceAccount that may write nothing
// else. A ConfigMap that is complete is enough, whatever became of the Job. A
// failed try is repeated after the retry interval. The error is an
// *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, UnpackBundle.
// Differs: permissions are observed before the Job runs; a Job is replaced only
// when what it was asked for differs; a repeated lookup waits for no second event.
func Unpack(in UnpackInput) (UnpackOutcome, error) {
	if err := in.validate(); err != nil {
		return UnpackOutcome{}, err
	}
	u := &unpacking{in: &in, name: unpackName(in.Lookup.Path)}
	u.out.Lookup = *in.Lookup.DeepCopy()
	u.order()
	u.run()
	return u.out, nil
}

func (in *UnpackInput) validate() error {
	ref := in.Lookup.CatalogSourceRef
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.Lookup.Path == "":
		return &olmcore.InputError{Field: "Lookup.path", Problem: "is empty"}
	case ref == nil || ref.Namespace == "" || ref.Name == "":
		return &olmcore.InputError{Field: "Lookup.catalogSourceRef", Problem: "has no namespace or no name"}
	case in.Config.OPMImage == "":
		return &olmcore.InputError{Field: "Config.OPMImage", Problem: "is empty"}
	case in.Config.UtilImage == "":
		return &olmcore.InputError{Field: "Config.UtilImage", Problem: "is empty"}
	}
	return in.Config.validate()
}

// unpacking is one call of Unpack.
type unpacking struct {
	in   *UnpackInput
	name string
	out  UnpackOutcome
	jobs []*batchv1.Job // that are not being deleted, newest first
}

func (u *unpacking) warn(reason string, target olmcore.Object, format string, args ...any) {
	u.out.Diagnostics = append(u.out.Diagnostics, olmcore.Diagnostic{
		Severity: olmcore.Warning, Reason: reason, Message: fmt.Sprintf(format, args...), Target: olmcore.RefOf(target).Unversioned(),
	})
}

// condition sets a condition that is True. Unlike those of other objects its
// time changes with the reason.
func (u *unpacking) condition(kind v1alpha1.BundleLookupConditionType, reason, message string) {
	next := v1alpha1.BundleLookupCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: clip(message)}
	have := u.out.Lookup.GetCondition(kind)
	if next.LastTransitionTime = have.LastTransitionTime; have.Status != next.Status || have.Reason != reason || have.LastTransitionTime == nil {
		next.LastTransitionTime = new(olmcore.Timestamp(u.in.Now))
	}
	conditions := &u.out.Lookup.Conditions
	i := slices.IndexFunc(*conditions, func(c v1alpha1.BundleLookupCondition) bool { return c.Type == kind })
	if i < 0 {
		*conditions = append(*conditions, next)
		return
	}
	(*conditions)[i] = next
}

func (u *unpacking) pending(reason, message string) {
	u.condition(v1alpha1.BundleLookupPending, reason, message)
}

func (u *unpacking) failed(reason, message string) {
	u.condition(v1alpha1.BundleLookupFailed, reason, message)
}

func (u *unpacking) isTrue(kind v1alpha1.BundleLookupConditionType) bool {
	return u.out.Lookup.GetCondition(kind).Status == corev1.ConditionTrue
}

// run asks the rules in order.
func (u *unpacking) run() {
	if u.isTrue(v1alpha1.BundleLookupFailed) || !u.isTrue(v1alpha1.BundleLookupPending) {
		return
	}
	source := u.in.CatalogSource
	if source == nil || source.DeletionTimestamp != nil || source.UID == "" {
		u.pending(reasonSourceMissing, messageSourceMissing)
		return
	}
	if content, ok := loadComplete(u.in.ConfigMap, u.in.Lookup.Path); ok {
		u.out.Diagnostics = append(u.out.Diagnostics, content.found...)
		u.configMap()
		u.load(content)
		return
	}
	if !u.configMap() || !u.permissions() {
		u.pending(reasonNotStarted, messageNotStarted)
		return
	}
	u.job()
}

// job is the part of a round that is about the Job.
func (u *unpacking) job() {
	desired, hash := u.desiredJob(u.name)
	if len(u.jobs) == 0 {
		u.pending(reasonNotStarted, messageNotStarted)
		if !u.taken(u.name) {
			u.create(desired, ReasonUnpackObjectAbsent)
		}
		return
	}
	newest := u.jobs[0]
	interval := u.retryInterval()
	switch end := jobCondition(newest, batchv1.JobFailed); {
	case u.differs(newest, hash):
		u.delete(newest, ReasonUnpackObjectDiffers, "what it was asked for differs")
		return
	case end != nil:
		u.history()
		if u.retry(end.LastTransitionTime.Time, interval) {
			return
		}
		u.failed(end.Reason, end.Message)
		return
	}
	end := jobCondition(newest, batchv1.JobComplete)
	if end == nil {
		u.pending(reasonIncomplete, u.podTexts(newest))
		return
	}
	// The ConfigMap of a Job that has just ended may not be visible yet.
	if left := bounded(end.LastTransitionTime.Time, or(u.in.Config.VisibilityGrace, DefaultVisibilityGrace), u.in.Now); left > 0 {
		u.pending(reasonIncomplete, messageNotCompleted)
		u.out.Requeue(left)
		return
	}
	if !u.retry(end.LastTransitionTime.Time, interval) {
		u.failed(ReasonBundleEmpty, fmt.Sprintf("unpack job finished but %s/%s holds no bundle", u.in.ConfigMap.Namespace, u.name))
	}
}

// retry asks for the next try when it is due, and says when it is.
func (u *unpacking) retry(since time.Time, interval time.Duration) bool {
	if left := bounded(since, interval, u.in.Now); left > 0 {
		u.out.Requeue(left)
		return false
	}
	desired, _ := u.desiredJob(u.nextName())
	u.create(desired, ReasonUnpackRetried)
	u.pending(reasonNotStarted, messageNotStarted)
	return true
}

// bounded is what is left of d since then; a clock that was moved back counts as
// no time passed.
func bounded(since time.Time, d time.Duration, now time.Time) time.Duration {
	return min(d, since.Add(d).Sub(now))
}

// load hands out the bundle of a complete ConfigMap.
func (u *unpacking) load(content bundleContent) {
	cm, lookup, bundle := u.in.ConfigMap, &u.out.Lookup, content.bundle
	u.out.Digest = content.digest
	var err error
	if bundle.Properties, err = parseProperties(lookup.Properties); err != nil {
		u.invalid("failed to load bundle properties for %q: %s", lookup.Identifier, err)
		return
	}
	bundle.Image = lookup.Path
	probe := olmcore.Operator{Name: or(lookup.Identifier, lastCSV(bundle)), Replaces: lookup.Replaces, Bundle: bundle}
	if _, problem := bundleCSV(probe, cm.Namespace); problem != nil {
		u.invalid("%s", problem.Message)
		return
	}
	lookup.RemoveCondition(v1alpha1.BundleLookupPending)
	u.out.Bundle = &bundle
}

func (u *unpacking) invalid(format string, args ...any) {
	u.out.Digest = ""
	u.failed(ReasonBundleInvalid, fmt.Sprintf(format, args...))
	u.warn(ReasonBundleInvalid, u.in.ConfigMap, format, args...)
}

// lastCSV is the name of a bundle's last ClusterServiceVersion.
func lastCSV(bundle olmcore.Bundle) (name string) {
	for _, o := range bundle.Objects {
		if olmcore.GVKOf(o).Kind == kindCSV {
			name = o.GetName()
		}
	}
	return name
}

// parseProperties reads properties as lookups and steps carry them.
func parseProperties(text string) ([]olmcore.Property, error) {
	if text == "" {
		return nil, nil
	}
	var list struct {
		Properties []olmcore.Property `json:"properties"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}
