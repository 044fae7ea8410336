// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

const (
	// AlongsidePrefix starts the annotations in which a definition records the ClusterServiceVersions that brought it,
	// each as namespace/name. OLM writes them.
	AlongsidePrefix = "operatorframework.io/installed-alongside-"
	// changeableBy is the annotation of a definition that names the namespaces whose plans may change it whoever else
	// owns it, separated by commas. An administrator sets it; no bundle can.
	changeableBy = olmcore.KeyPrefix + "changeable-by"
	// establishTimeout is how long a definition may take to be served.
	establishTimeout = time.Minute
	// maxRecorded is how many versions of one namespace a definition records. Its annotations have an end, and other
	// namespaces need room, too.
	maxRecorded = 20
)

// definition is a CustomResourceDefinition that steps describe. Definitions are shared by all namespaces: they are
// never deleted, do not count before they are served, and change only in ways that take nothing away from other owners
// or from existing custom resources.
type definition struct {
	w *world
	t *Target
	// desired is what the manifest says, with the labels of OLM, without the metadata that withoutRecords drops. hash
	// identifies it.
	desired *apiextensionsv1.CustomResourceDefinition
	hash    string
	// have is the definition as it exists, nil when it does not.
	have *apiextensionsv1.CustomResourceDefinition
}

// definitionRule decides about a CustomResourceDefinition.
func definitionRule(w *world, t *Target) Verdict {
	object := labelled(w, t)
	withoutRecords(manifest.Fields(object, "metadata"))
	hash, err := hashOf(object)
	if err != nil {
		return unreadable(kinds.CRD, t.Key.Name, err)
	}
	o, err := typed(t, object)
	if err != nil {
		return unreadable(kinds.CRD, t.Key.Name, err)
	}
	d := definition{w: w, t: t, desired: o.(*apiextensionsv1.CustomResourceDefinition), hash: hash}
	d.have, _ = t.Observed.(*apiextensionsv1.CustomResourceDefinition)
	if problem := d.confineConversion(); problem != "" {
		return invalid("CustomResourceDefinition %s: %s", t.Key.Name, problem)
	}
	return d.decide()
}

// withoutRecords drops from the metadata of a manifest what says who owns, converts and may change a definition. Only
// steps, package csv and administrators write that. The controller writes definitions whatever account the plan runs
// as, so a bundle that brought a record could name the versions of others, or take the place of their records.
//
// Differs: OLM takes over the versions that a manifest records.
func withoutRecords(metadata map[string]any) {
	annotations, labels := manifest.Strings(metadata, "annotations"), manifest.Strings(metadata, "labels")
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return strings.HasPrefix(key, AlongsidePrefix) || strings.HasPrefix(key, olmcore.KeyPrefix)
	})
	for _, key := range owning {
		if key != olmcore.LabelManaged {
			delete(labels, key)
		}
	}
	metadata["annotations"], metadata["labels"] = annotations, labels
}

// decide returns the Verdict of a definition that the plan can read.
func (d definition) decide() Verdict {
	v := d.checkVersions()
	switch {
	case v.Refused():
		return v
	case d.have == nil:
		return d.create()
	}
	return d.update()
}

// checkVersions refuses a definition without versions, and one for which the versions of the plan cannot be recorded.
func (d definition) checkVersions() Verdict {
	if len(d.desired.Spec.Versions) == 0 {
		return blocked("could not find any versions in the new CRD")
	}
	name, versions := d.t.Key.Name, d.t.Versions
	for _, version := range versions {
		if !MayBeRecorded(version) {
			return invalid("CustomResourceDefinition %s: %q is no name of a ClusterServiceVersion", name, version)
		}
	}
	if len(versions) > maxRecorded {
		return invalid("CustomResourceDefinition %s is made for %d versions; there is room for %d", name, len(versions), maxRecorded)
	}
	return Verdict{}
}

// create returns the Verdict of a definition that does not exist.
func (d definition) create() Verdict {
	if v := d.mayCreate(); v.Outcome != Pending {
		return v
	}
	entries, _ := d.recording(nil)
	return create(d.w, d.t, annotated(d.desired, entries, map[string]string{hashKey: d.hash}))
}

// update returns the Verdict of a definition that exists.
func (d definition) update() Verdict {
	t, w := d.t, d.w
	have := d.have
	entries, _ := Recorded(have)
	recorded := !slices.ContainsFunc(t.Versions, func(name string) bool {
		return !slices.Contains(slices.Collect(maps.Values(entries)), w.Plan.Namespace+"/"+name)
	})
	applied := have.Annotations[hashKey]
	switch {
	case len(entries) == 0 && !isManaged(have) && !w.OverwriteUnmanaged: // OLM labels what it records since 0.26
		if field := narrowed(d.desired, have); field != "" {
			return unmanaged(t, field)
		}
		return d.served()
	case applied == d.hash && recorded:
		return d.served()
	case altered(w, t):
		return d.served().saying(sayAltered(w, t))
	}
	newer := d.newerOwner()
	if newer != "" && d.servesNewer() {
		return d.write(have, nil).saying(w.about(t.Steps[0], olmcore.Info, report.NewerCRDKept,
			"CustomResourceDefinition %s is kept as %s needs it", have.Name, newer)).saying(d.sayConvertedElsewhere()...)
	}
	if w.wrote(t.Key) && applied != "" && recorded {
		return d.served().saying(sayShared(w, t))
	}
	return d.change()
}

// servesNewer reports whether the observed definition stays as it is for a newer owner: the step's definition would
// take something away from its users, or it takes nothing away from users of the step's definition.
func (d definition) servesNewer() bool {
	return d.mayKeepConversion() && (narrowed(d.have, d.desired) != "" || narrowed(d.desired, d.have) == "")
}

// change makes the observed definition what the step describes, as far as it may.
func (d definition) change() Verdict {
	w, have := d.w, d.have
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, d.desired.Labels)
	after.Annotations, _ = olmcore.MergeLabels(after.Annotations, d.desired.Annotations)
	after.Spec = *d.desired.Spec.DeepCopy()
	if d.convertedByOthers() {
		after.Spec.Conversion = have.Spec.Conversion.DeepCopy()
	}
	// What is refused for the sake of others asks for no judgement of their custom resources.
	if owners := d.protectedOwners(); len(owners) > 0 {
		if field := d.takes(after); field != "" {
			return blocked("CustomResourceDefinition %s is owned by %s too, and %s would change for it", have.Name, strings.Join(owners, ", "), field)
		}
		if w.isConfined() {
			if field := loosened(have, after); field != "" {
				return blocked("CustomResourceDefinition %s is owned by %s too, and %s would be less strict for it",
					have.Name, strings.Join(owners, ", "), field)
			}
			keepShown(have, after)
		}
		kept := have.DeepCopy()
		after.Spec.Conversion = kept.Spec.Conversion
		after.Labels, after.Annotations = kept.Labels, kept.Annotations
	}
	if v := d.mayServe(after); v.Outcome != Pending {
		return v
	}
	judged := d.judgeResources()
	problem := d.unsafe()
	if problem != "" && !judged.Refused() {
		judged.Outcome, judged.Message = Blocked, problem
	}
	if judged.Refused() {
		return judged
	}
	v := d.write(after, map[string]string{hashKey: d.hash}).saying(judged.Said...).saying(d.sayConvertedElsewhere()...)
	v.Change = judged.Change
	return v
}

// write asks for the Update to after, with the records of the plan's versions, the namespace that installed the
// definition first, and further annotations. If only the last two would change, there is no Update.
func (d definition) write(after *apiextensionsv1.CustomResourceDefinition, further map[string]string) Verdict {
	entries, others := Recorded(after)
	entries, live := d.recording(entries)
	own, namespace := 0, d.w.Plan.Namespace
	for _, value := range entries {
		if strings.HasPrefix(value, namespace+"/") {
			own++
		}
	}
	if own > maxRecorded {
		return blocked("CustomResourceDefinition %s records %d versions of namespace %s; there is room for %d", after.Name, own, namespace, maxRecorded)
	}
	after = after.DeepCopy()
	after.Annotations = others
	after = annotated(after, entries)
	if apiequality.Semantic.DeepEqual(d.have.ObjectMeta, after.ObjectMeta) && apiequality.Semantic.DeepEqual(d.have.Spec, after.Spec) {
		return d.served()
	}
	first := firstInstalledBy(others[olmcore.AnnotationFirstInstalledBy], live, namespace)
	if first != "" && len(d.t.Versions) > 0 {
		after.Annotations[olmcore.AnnotationFirstInstalledBy] = first
	}
	v := change(d.w, d.t, annotated(after, further))
	if d.t.Recorded == v1alpha1.StepStatusWaitingForAPI {
		v.Status = v1alpha1.StepStatusWaitingForAPI // its memory that the plan wrote it
	}
	return v
}

// served decides about a definition that is not to be written: it counts once it is served.
func (d definition) served() Verdict {
	if kinds.Established(d.have) {
		return Verdict{Outcome: Done}
	}
	since := d.have.CreationTimestamp.Time
	latest := func(at time.Time) {
		if at.After(since) {
			since = at
		}
	}
	if start := d.w.Plan.Status.StartTime; start != nil {
		latest(start.Time)
	}
	v := waiting("waiting for CustomResourceDefinition %s to be established", d.have.Name)
	for _, c := range d.have.Status.Conditions {
		if c.Type == apiextensionsv1.NamesAccepted || c.Type == apiextensionsv1.Established {
			latest(c.LastTransitionTime.Time)
		}
		if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse && c.Message != "" {
			v.Message += ": " + c.Message
		}
	}
	v.Status, v.Deadline = v1alpha1.StepStatusWaitingForAPI, since.Add(establishTimeout)
	if !d.w.Preflight && !d.w.Now.Before(v.Deadline) {
		v.Outcome = Blocked
	}
	return v
}

// unsafe says why a definition may not become what the step describes, whoever uses it.
func (d definition) unsafe() string {
	have, desired := d.have, d.desired
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

// annotated returns a copy of a definition with further annotations.
func annotated(crd *apiextensionsv1.CustomResourceDefinition, further ...map[string]string) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	for _, f := range further {
		crd.Annotations, _ = olmcore.MergeLabels(crd.Annotations, f)
	}
	return crd
}

// Recorded splits the annotations of a definition into the entries that record ClusterServiceVersions and the others.
func Recorded(crd *apiextensionsv1.CustomResourceDefinition) (entries, others map[string]string) {
	entries, others = map[string]string{}, map[string]string{}
	for key, value := range crd.Annotations {
		if strings.HasPrefix(key, AlongsidePrefix) {
			entries[key] = value
		} else {
			others[key] = value
		}
	}
	return entries, others
}

// MayBeRecorded reports whether a name may be one that a definition records: others look versions up by what is
// recorded.
func MayBeRecorded(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// recording returns the entries of those that exist or are about to, and those of the plan's own versions. live are the
// values of the former. Two names may have one hash under which OLM records them, and such names are easily found: the
// first entry stays, the next gets a key of its own.
func (d definition) recording(entries map[string]string) (kept map[string]string, live []string) {
	kept = map[string]string{}
	add := func(value string) {
		h := fnv.New64a()
		h.Write([]byte(value))
		key := fmt.Sprintf("%s%x", AlongsidePrefix, h.Sum64())
		if have, taken := kept[key]; taken && have != value {
			key += "-" + olmcore.NameSuffix(20, value)
		}
		kept[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		namespace, name, _ := strings.Cut(entries[key], "/")
		csv := d.w.version(namespace, name)
		if csv != nil && !csv.IsCopied() || d.w.isAnnounced(namespace, name) {
			add(entries[key])
			live = append(live, entries[key])
		}
	}
	for _, name := range d.t.Versions {
		add(d.w.Plan.Namespace + "/" + name)
	}
	return kept, live
}

// recordedOwners returns the values of those entries of the observed definition that counts accepts, sorted and each
// once. Only versions that a definition records count: anybody may claim to own what exists.
func (d definition) recordedOwners(counts func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool) []string {
	entries, _ := Recorded(d.have)
	var owners []string
	for _, value := range entries {
		namespace, name, ok := strings.Cut(value, "/")
		csv := d.w.version(namespace, name)
		if csv != nil && (csv.IsCopied() || csv.DeletionTimestamp != nil || !owns(csv, d.have.Name)) {
			csv = nil
		}
		if ok && counts(namespace, name, csv) {
			owners = append(owners, value)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// newerOwner names a newer ClusterServiceVersion of the same package that needs the definition as it is, if that serves
// what this step's needs; empty for none.
func (d definition) newerOwner() string {
	if len(d.t.Versions) == 0 {
		return ""
	}
	own := d.w.known(d.t.Versions[0])
	if own == nil {
		return ""
	}
	for _, o := range own.Spec.CustomResourceDefinitions.Owned {
		v := versionOf(d.have, o.Version)
		if o.Name == d.have.Name && (v == nil || !v.Served) {
			return ""
		}
	}
	newer := d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == d.w.Plan.Namespace && (slices.Contains(d.t.Versions, name) || name == own.Spec.Replaces)
		return csv != nil && !mine && packagePrefix(name) == packagePrefix(own.Name) && csv.Spec.Version.GT(own.Spec.Version.Version)
	})
	if len(newer) == 0 {
		return ""
	}
	return newer[0]
}

// protectedOwners returns the live ClusterServiceVersions of other operators that brought the definition and own it, or
// are about to; none where the plan may change it all the same.
func (d definition) protectedOwners() []string {
	w, namespaces := d.w, strings.Split(d.have.Annotations[changeableBy], ",")
	if w.ChangeOwnedCRDs || slices.Contains(namespaces, w.Plan.Namespace) {
		return nil
	}
	replaced := w.replaced(d.t.Versions)
	return d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == w.Plan.Namespace && (replaced[name] || w.precedes(namespace, name, d.t.Versions))
		return !mine && (csv != nil || w.isAnnounced(namespace, name))
	})
}

// takes returns what after takes away from other owners of the observed definition; empty for nothing.
func (d definition) takes(after *apiextensionsv1.CustomResourceDefinition) string {
	listed := slices.ContainsFunc(d.t.Versions, func(name string) bool {
		csv := d.w.known(name)
		return csv != nil && owns(csv, d.have.Name)
	})
	switch {
	case !listed && !apiequality.Semantic.DeepEqual(d.have.Spec, after.Spec):
		return "its spec, by a step of none that owns it,"
	case !apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(after)):
		return "spec.conversion"
	}
	return narrowed(d.have, after)
}
