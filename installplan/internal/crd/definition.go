// SPDX-License-Identifier: Apache-2.0

// Package crd decides what a plan does to a CustomResourceDefinition that its steps
// describe. Definitions are shared by all namespaces: they are never deleted, are not
// there before they are served, and change only in ways that take nothing away from
// other owners or from existing custom resources.
package crd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/versions"
	"github.com/olmcore/olm/olmcore"
)

const (
	// StepHash is the annotation of an object that says what a step applied.
	StepHash = olmcore.KeyPrefix + "step-hash"
	// ChangeableBy is the annotation of a definition that names the namespaces whose
	// plans may change it whoever else owns it, separated by commas. An administrator
	// sets it; no bundle can.
	ChangeableBy = olmcore.KeyPrefix + "changeable-by"
	// establishTimeout is how long a definition may take to be served.
	establishTimeout = time.Minute
)

// Definition is a CustomResourceDefinition that steps of a plan describe, and what is
// known about it.
type Definition struct {
	// Desired is what the manifest says, with the labels of OLM; Hash identifies it.
	// Records are the versions that the manifest records. Neither they nor
	// ChangeableBy are among the annotations of Desired.
	Desired *apiextensionsv1.CustomResourceDefinition
	Hash    string
	Records map[string]string
	// Observed is the definition as it exists, nil when it does not.
	Observed *apiextensionsv1.CustomResourceDefinition
	// Versions are the names of the ClusterServiceVersions that it is made for.
	Versions []string
	Known    versions.Known
	// Written: the last write of the plan succeeded. Met: the step found a definition
	// that it did not make.
	Written, Met bool
	// Resources are the custom resources that were judged; Hidden, that the plan may
	// only name those of its own namespace.
	Resources []ResourceVerdict
	Hidden    bool
	// OverwriteUnmanaged and ChangeOwned are those of installplan.Config.
	OverwriteUnmanaged, ChangeOwned bool
}

// Verb is what a Decision asks for.
type Verb int

const (
	// Use: nothing is written; the definition counts once it is served.
	Use Verb = iota
	// Create and Update write After.
	Create
	Update
	// Refuse: it cannot be applied as things are. Never: it can never be.
	Refuse
	Never
)

// Decision is what becomes of a Definition.
type Decision struct {
	Verb Verb
	// After is what Create and Update write.
	After *apiextensionsv1.CustomResourceDefinition
	// Message says why it is refused.
	Message string
	Said    []report.Finding
	// Change is the change of schemas that custom resources must be judged for, nil
	// for none.
	Change *SchemaChange
}

func refuse(format string, args ...any) Decision {
	return Decision{Verb: Refuse, Message: fmt.Sprintf(format, args...)}
}

func (d Decision) saying(said ...report.Finding) Decision {
	d.Said = append(d.Said, said...)
	return d
}

// Decide returns what becomes of a definition.
func (d Definition) Decide() Decision {
	if len(d.Desired.Spec.Versions) == 0 {
		return refuse("could not find any versions in the new CRD")
	}
	if problem := unrecordable(d.Desired.Name, d.Versions); problem != "" {
		return Decision{Verb: Never, Message: problem}
	}
	have := d.Observed
	if have == nil {
		return Decision{Verb: Create, After: annotated(d.Desired, record(d.Records, d.Known, d.Versions), map[string]string{StepHash: d.Hash})}
	}
	recorded := recordsAll(have, d.Known, d.Versions)
	applied := have.Annotations[StepHash]
	switch {
	case !isManaged(have) && !d.OverwriteUnmanaged:
		if field := Narrowed(d.Desired, have); field != "" {
			return Decision{Verb: Refuse, Message: UnmanagedMessage("CustomResourceDefinition", have.Name, field)}
		}
		return Decision{}
	case applied == d.Hash && recorded:
		return Decision{}
	case applied == "" && d.Written && d.Met:
		return Decision{}.saying(Altered(olmcore.KeyOf(have).String()))
	}
	if newer := d.newerOwner(); newer != "" && (Narrowed(have, d.Desired) != "" || Narrowed(d.Desired, have) == "") {
		said := report.Step(olmcore.Info, report.NewerCRDKept, "CustomResourceDefinition %s is kept as %s needs it", have.Name, newer)
		return d.write(have, nil).saying(said)
	}
	if d.Written && applied != "" && recorded {
		return Decision{}.saying(Shared(olmcore.KeyOf(have).String()))
	}
	return d.change()
}

// change makes the observed definition what the step describes, as far as it may.
func (d Definition) change() Decision {
	have := d.Observed
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, d.Desired.Labels)
	after.Annotations, _ = olmcore.MergeLabels(after.Annotations, d.Desired.Annotations)
	after.Spec = *d.Desired.Spec.DeepCopy()
	if d.convertedByOthers() {
		after.Spec.Conversion = have.Spec.Conversion.DeepCopy()
	}
	// What is refused for the sake of others asks for no judgement of their custom
	// resources.
	if owners := d.protectedOwners(); len(owners) > 0 {
		if field := d.taken(after); field != "" {
			return refuse("CustomResourceDefinition %s is owned by %s too, and %s would change for it", have.Name, strings.Join(owners, ", "), field)
		}
		after.Spec.Conversion = have.Spec.Conversion.DeepCopy()
		after.Labels, after.Annotations = have.DeepCopy().Labels, have.DeepCopy().Annotations
	}
	judged := d.brokenResources()
	if judged.Message == "" {
		judged.Message = d.unsafe()
	}
	if judged.Message != "" {
		judged.Verb = Refuse
		return judged
	}
	decision := d.write(after, map[string]string{StepHash: d.Hash}).saying(judged.Said...)
	decision.Change = judged.Change
	return decision
}

// write asks for the Update to after, with the plan's own records and further
// annotations, or finds that it would change nothing but the latter.
func (d Definition) write(after *apiextensionsv1.CustomResourceDefinition, annotations map[string]string) Decision {
	entries, others := Recorded(after.Annotations)
	for key, value := range d.Records {
		entries[key] = value
	}
	entries = record(entries, d.Known, d.Versions)
	own := 0
	for _, value := range entries {
		if strings.HasPrefix(value, d.Known.Namespace+"/") {
			own++
		}
	}
	if own > maxRecorded {
		return refuse("CustomResourceDefinition %s records %d versions of namespace %s; there is room for %d", after.Name, own, d.Known.Namespace, maxRecorded)
	}
	after = after.DeepCopy()
	after.Annotations = others
	after = annotated(after, entries, nil)
	if apiequality.Semantic.DeepEqual(d.Observed.ObjectMeta, after.ObjectMeta) && apiequality.Semantic.DeepEqual(d.Observed.Spec, after.Spec) {
		return Decision{}
	}
	return Decision{Verb: Update, After: annotated(after, nil, annotations)}
}

// annotated returns a copy of a definition with further annotations.
func annotated(crd *apiextensionsv1.CustomResourceDefinition, entries, further map[string]string) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	crd.Annotations, _ = olmcore.MergeLabels(crd.Annotations, entries)
	crd.Annotations, _ = olmcore.MergeLabels(crd.Annotations, further)
	return crd
}

// unsafe says why a definition may not become what the step describes, whoever uses it.
func (d Definition) unsafe() string {
	have, desired := d.Observed, d.Desired
	var lost []string
	for _, stored := range have.Status.StoredVersions {
		if versionOf(desired, stored) == nil {
			lost = append(lost, stored)
		}
	}
	if slices.Sort(lost); len(lost) > 0 {
		return fmt.Sprintf("risk of data loss updating %q: new CRD removes version %s that is listed as a stored version on the existing CRD",
			have.Name, strings.Join(lost, ", "))
	}
	for _, f := range [...]struct{ field, old, new string }{
		{"spec.scope", string(have.Spec.Scope), string(desired.Spec.Scope)},
		{"spec.names.kind", have.Spec.Names.Kind, desired.Spec.Names.Kind},
		{"spec.names.plural", have.Spec.Names.Plural, desired.Spec.Names.Plural},
	} {
		if f.old != f.new {
			return fmt.Sprintf("CustomResourceDefinition %s: %s is immutable", have.Name, f.field)
		}
	}
	return ""
}

// Awaited says what a definition that is not served waits for, and until when it may
// wait for a plan that started then.
func Awaited(crd *apiextensionsv1.CustomResourceDefinition, started time.Time) (message string, deadline time.Time) {
	since := crd.CreationTimestamp.Time
	if started.After(since) {
		since = started
	}
	message = fmt.Sprintf("waiting for CustomResourceDefinition %s to be established", crd.Name)
	for _, c := range crd.Status.Conditions {
		if c.Type != apiextensionsv1.NamesAccepted && c.Type != apiextensionsv1.Established {
			continue
		}
		if c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
		if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse && c.Message != "" {
			message += ": " + c.Message
		}
	}
	return message, since.Add(establishTimeout)
}

// UnmanagedMiddle is in every message of UnmanagedMessage.
const UnmanagedMiddle = " exists, is not managed by OLM, and differs from the step"

// UnmanagedMessage says that an unmanaged object is in the way, in which field it
// differs where that is known, and what to do about it.
func UnmanagedMessage(kind, name, field string) string {
	if field != "" {
		field = " in " + field
	}
	return fmt.Sprintf("%s %s%s%s; label it %s=true to hand it over, or remove it", kind, name, UnmanagedMiddle, field, olmcore.LabelManaged)
}

// Shared is the Finding that another plan wrote an object after this one.
func Shared(object string) report.Finding {
	return report.Step(olmcore.Warning, report.SharedObject, "%s is also that of another plan, which wrote it last", object)
}

// Altered is the Finding that an Update of an object succeeded and its mark is not there:
// something rewrites what is stored.
func Altered(object string) report.Finding {
	return report.Step(olmcore.Info, report.AppliedContentAltered, "%s was stored with another content than was written", object)
}
