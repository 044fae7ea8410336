// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/olmcore"
)

// update returns the Decision about a definition that exists.
func (d definition) update() Decision {
	t, w := d.t, d.w
	have := d.have
	entries, _ := Recorded(have)
	recorded := !slices.ContainsFunc(t.Versions, func(name string) bool {
		return !slices.Contains(slices.Collect(maps.Values(entries)), w.in.Plan.Namespace+"/"+name)
	})
	applied := have.Annotations[hashKey]
	switch {
	// Since version 0.26, OLM labels every definition on which it records a version.
	case len(entries) == 0 && !isManaged(have) && !w.in.OverwriteUnmanaged:
		if field := narrowed(d.desired, have); field != "" {
			return unmanaged(t, field)
		}
		return d.served()
	case applied == d.hash && recorded:
		return d.served()
	case altered(w, t):
		return d.served().with(reportAltered(w, t))
	}
	newer := d.newerOwner()
	if newer != "" && d.servesNewer() {
		return d.write(have, nil).with(w.about(t.Steps[0], olmcore.Info, reasons.NewerCRDKept,
			"CustomResourceDefinition %s is kept, because %s needs it", have.Name, newer)).with(d.reportConvertedElsewhere()...)
	}
	if w.wrote(t.Key) && applied != "" && recorded {
		return d.served().with(reportShared(w, t))
	}
	return d.change()
}

// served returns the Decision about a definition that is not written. The step is Done once the definition is
// established.
func (d definition) served() Decision {
	if kinds.Established(d.have) {
		return Decision{Outcome: Done}
	}
	since := d.have.CreationTimestamp.Time
	latest := func(at time.Time) {
		if at.After(since) {
			since = at
		}
	}
	if start := d.w.in.Plan.Status.StartTime; start != nil {
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
	if !d.w.in.Preflight && !d.w.in.Now.Before(v.Deadline) {
		v.Outcome = Blocked
	}
	return v
}

// Recorded splits the annotations of a definition into two maps. entries contains the annotations with AlongsidePrefix,
// and others contains the rest. Neither map is nil.
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

// newerOwner returns a newer ClusterServiceVersion of the same package that needs the definition as it is. It returns
// an empty string if there is none, or if the observed definition does not serve the versions that the step needs.
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
		mine := namespace == d.w.in.Plan.Namespace && (slices.Contains(d.t.Versions, name) || name == own.Spec.Replaces)
		return csv != nil && !mine && packagePrefix(name) == packagePrefix(own.Name) && csv.Spec.Version.GT(own.Spec.Version.Version)
	})
	if len(newer) == 0 {
		return ""
	}
	return newer[0]
}

// recordedOwners returns the sorted records of the observed definition for which the function counts returns true. A
// ClusterServiceVersion without a record is ignored, because any version may claim to own an existing definition.
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

// servesNewer reports whether the observed definition is kept for a newer owner. It is kept if the step's definition
// would narrow it, or if it offers everything that the step's definition offers. The step must also be able to use its
// conversion.
func (d definition) servesNewer() bool {
	return d.mayKeepConversion() && (narrowed(d.have, d.desired) != "" || narrowed(d.desired, d.have) == "")
}

// mayKeepConversion reports whether the step may use the conversion of the observed definition. That conversion must
// equal the one of the step, or be the webhook of a live ClusterServiceVersion.
func (d definition) mayKeepConversion() bool {
	return d.convertedByOthers() || apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(d.desired))
}

// convertedByOthers reports whether the conversion webhook of the observed definition belongs to a live
// ClusterServiceVersion. If that ClusterServiceVersion is in another namespace, the webhook must call a Service of that
// namespace.
func (d definition) convertedByOthers() bool {
	conversion := d.have.Spec.Conversion
	versions := slices.Concat(d.w.in.ClusterServiceVersions, d.w.in.Alongside)
	return Converts(conversion) && slices.ContainsFunc(versions, func(csv *v1alpha1.ClusterServiceVersion) bool {
		mayConvert := csv.Namespace == d.w.in.Plan.Namespace || convertsIn(conversion, csv.Namespace)
		return mayConvert && csv.DeletionTimestamp == nil && !csv.IsCopied() &&
			slices.ContainsFunc(csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
				return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, d.have.Name)
			})
	})
}

// convertsIn reports whether a Service of a namespace performs a conversion.
func convertsIn(c *apiextensionsv1.CustomResourceConversion, namespace string) bool {
	return c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil &&
		c.Webhook.ClientConfig.Service.Namespace == namespace
}

// write returns a Decision with the update to after. The update adds the records of the plan's versions, the namespace
// that installed the definition first, and the annotations in further. If only that namespace or the annotations in
// further would change, there is no update.
func (d definition) write(after *apiextensionsv1.CustomResourceDefinition, further map[string]string) Decision {
	entries, others := Recorded(after)
	entries, live := d.recording(entries)
	own, namespace := 0, d.w.in.Plan.Namespace
	for _, value := range entries {
		if strings.HasPrefix(value, namespace+"/") {
			own++
		}
	}
	if own > maxRecorded {
		return blocked("CustomResourceDefinition %s would record %d versions of namespace %s, but can record only %d",
			after.Name, own, namespace, maxRecorded)
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
		v.Status = v1alpha1.StepStatusWaitingForAPI // records that the plan wrote it
	}
	return v
}

// firstInstalledBy returns the value that annotation olmcore.AnnotationFirstInstalledBy of a definition should have, or
// an empty string. named is the present value. live contains the records of versions that exist or will be created
// soon, without those of the plan. A record is namespace/name.
//
// An existing annotation is never changed, because the records of the first namespace are missing while its operator is
// reinstalled. A new annotation is set only if all live records are of one other namespace.
func firstInstalledBy(named string, live []string, namespace string) string {
	before := namespacesOf(live)
	if named == "" && len(before) == 1 && before[0] != namespace {
		return before[0]
	}
	return named
}

// namespacesOf returns the sorted namespaces of records.
func namespacesOf(records []string) []string {
	var namespaces []string
	for _, record := range records {
		namespace, _, _ := strings.Cut(record, "/")
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// reportConvertedElsewhere reports that a Service of another namespace converts the custom resources, and that the plan
// does not change this. A namespace may have installed the definition first in order to read the custom resources of
// others.
func (d definition) reportConvertedElsewhere() []olmcore.Diagnostic {
	namespace := d.w.in.Plan.Namespace
	if !d.convertedByOthers() || convertsIn(d.have.Spec.Conversion, namespace) {
		return nil
	}
	by := "another namespace"
	client := d.have.Spec.Conversion.Webhook.ClientConfig
	if client != nil && client.Service != nil {
		by = "Service " + client.Service.Name + " of namespace " + client.Service.Namespace
	}
	return []olmcore.Diagnostic{d.w.about(d.t.Steps[0], olmcore.Warning, reasons.ConvertedElsewhere,
		"CustomResourceDefinition %s: %s converts its custom resources, so it can read and change those of all namespaces", d.have.Name, by)}
}

// change returns the Decision that changes the observed definition to that of the step, as far as the plan may change
// it.
func (d definition) change() Decision {
	w, have := d.w, d.have
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(after.Labels, d.desired.Labels)
	after.Annotations, _ = olmcore.MergeMaps(after.Annotations, d.desired.Annotations)
	after.Spec = *d.desired.Spec.DeepCopy()
	if d.convertedByOthers() {
		after.Spec.Conversion = have.Spec.Conversion.DeepCopy()
	}
	// A change that other owners prevent is refused before custom resources are validated.
	if owners := d.protectedOwners(); len(owners) > 0 {
		if field := d.takes(after); field != "" {
			return blocked("CustomResourceDefinition %s is owned by %s too, and %s would change for it",
				have.Name, strings.Join(owners, ", "), field)
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
	v := d.write(after, map[string]string{hashKey: d.hash}).with(judged.Diagnostics...).with(d.reportConvertedElsewhere()...)
	v.Change = judged.Change
	return v
}

// keepShown copies the printer columns and warnings of each version of have to after. Clients show both.
func keepShown(have, after *apiextensionsv1.CustomResourceDefinition) {
	for i := range after.Spec.Versions {
		next := &after.Spec.Versions[i]
		if old := versionOf(have, next.Name); old != nil {
			old = old.DeepCopy()
			next.Deprecated, next.DeprecationWarning = old.Deprecated, old.DeprecationWarning
			next.AdditionalPrinterColumns = old.AdditionalPrinterColumns
		}
	}
}

// protectedOwners returns the live ClusterServiceVersions of other operators that installed the definition and own it,
// or will do so soon. It returns none if the plan may change the definition anyway.
func (d definition) protectedOwners() []string {
	w, namespaces := d.w, strings.Split(d.have.Annotations[changeableBy], ",")
	if w.in.ChangeOwnedCRDs || slices.Contains(namespaces, w.in.Plan.Namespace) {
		return nil
	}
	replaced := w.replaced(d.t.Versions)
	return d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == w.in.Plan.Namespace && (replaced[name] || w.precedes(namespace, name, d.t.Versions))
		return !mine && (csv != nil || w.isAnnounced(namespace, name))
	})
}

// replaced returns the names in own and those of the versions that they replace or skip, directly or through others.
func (w *world) replaced(own []string) map[string]bool {
	found := map[string]bool{}
	for open := slices.Clone(own); len(open) > 0; open = open[1:] {
		name := open[0]
		csv := w.known(name)
		if csv != nil && !found[name] {
			open = append(append(open, csv.Spec.Replaces), csv.Spec.Skips...)
		}
		found[name] = name != ""
	}
	return found
}

// takes returns the first field of the observed definition that after would change or narrow for its other owners, or
// an empty string.
func (d definition) takes(after *apiextensionsv1.CustomResourceDefinition) string {
	listed := slices.ContainsFunc(d.t.Versions, func(name string) bool {
		csv := d.w.known(name)
		return csv != nil && owns(csv, d.have.Name)
	})
	switch {
	case !listed && !apiequality.Semantic.DeepEqual(d.have.Spec, after.Spec):
		return "its spec, by a step of a version that does not own it,"
	case !apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(after)):
		return "spec.conversion"
	}
	return narrowed(d.have, after)
}

// mayServe decides whether a plan may write the versions of the definition after. A plan that runs as a ServiceAccount
// may not serve an additional version in an API group that another operator serves. The Outcome is Pending if the write
// is allowed.
func (d definition) mayServe(after *apiextensionsv1.CustomResourceDefinition) Decision {
	if !d.w.isConfined() {
		return Decision{}
	}
	for _, version := range after.Spec.Versions {
		old := versionOf(d.have, version.Name)
		if version.Served && (old == nil || !old.Served) {
			return d.mayAddToGroup(fmt.Sprintf("CustomResourceDefinition %s does not get version %s", d.have.Name, version.Name))
		}
	}
	return Decision{}
}

// unsafe returns why a definition may not be changed to that of the step, regardless of its owners. It returns an empty
// string if the definition may be changed.
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
