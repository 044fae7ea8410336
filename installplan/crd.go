// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

const alongsidePrefix = "operatorframework.io/installed-alongside-"

// judgeCRD is the rule of CustomResourceDefinitions: they are shared by all
// namespaces, never deleted, and not there before they are served.
func (e *evaluation) judgeCRD(t *target) verdict {
	want := e.complete(t)
	annotations := stringsOf(metadataOf(want), "annotations")
	recorded := alongsideOf(annotations)
	for key := range recorded {
		delete(annotations, key)
	}
	delete(annotations, e.d.in.Config.changeableKey()) // the administrator's alone
	metadataOf(want)["annotations"] = annotations
	hash, err := stepHash(want)
	if err != nil {
		return unreadable(t, err)
	}
	o, err := e.typed(t, want)
	if err != nil {
		return unreadable(t, err)
	}
	desired := o.(*apiextensionsv1.CustomResourceDefinition)
	if len(desired.Spec.Versions) == 0 {
		return verdict{outcome: blocked, message: "could not find any versions in the new CRD"}
	}
	if problem := e.unrecordable(t); problem != "" {
		return verdict{outcome: invalid, message: problem}
	}
	if t.observed == nil {
		e.addAlongside(annotations, recorded, t.operators())
		annotations[e.d.in.Config.stepHashKey()] = hash
		return e.create(t, want)
	}
	have := t.observed.(*apiextensionsv1.CustomResourceDefinition)
	if !isManagedCRD(have) && !e.d.in.Config.OverwriteUnmanaged {
		return e.unmanagedCRD(have, desired)
	}
	if e.isSettledCRD(t, have, hash) {
		return e.awaitEstablished(have)
	}
	if newer := e.newerOwner(t, have); newer != "" && (narrowed(have, desired) != "" || narrowed(desired, have) == "") {
		e.d.diagnose(olmcore.Info, ReasonNewerCRDKept, stepPath(t.steps[0]), "CustomResourceDefinition %s is kept as %s needs it", have.Name, newer)
		return e.changeCRD(t, have, have.DeepCopy())
	}
	if e.takenCRD(t, have) {
		return e.awaitEstablished(have)
	}
	after := have.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, desired.Labels)
	after.Annotations, _ = olmcore.MergeLabels(after.Annotations, desired.Annotations)
	after.Spec = desired.Spec
	if e.convertedElsewhere(have) {
		after.Spec.Conversion = have.Spec.Conversion.DeepCopy()
	}
	// What is refused for the sake of others asks for no judgement of their custom
	// resources.
	if v := e.respectOwners(t, have, after); v.refused() {
		return v
	}
	if problem := e.unsafe(have, desired); problem != "" {
		return verdict{outcome: blocked, message: problem}
	}
	if v := e.changeCRD(t, have, after); v.outcome != pending {
		return v
	}
	after.Annotations, _ = olmcore.MergeLabels(after.Annotations, map[string]string{e.d.in.Config.stepHashKey(): hash})
	return e.asCRD(t, verdict{status: v1alpha1.StepStatusUnknown})
}

// isSettledCRD reports that nothing is to be written.
func (e *evaluation) isSettledCRD(t *target, have *apiextensionsv1.CustomResourceDefinition, hash string) bool {
	if have.Annotations[e.d.in.Config.stepHashKey()] == hash {
		return e.recordedAlongside(t, have)
	}
	return e.altered(t)
}

func (e *evaluation) recordedAlongside(t *target, have *apiextensionsv1.CustomResourceDefinition) bool {
	return !slices.ContainsFunc(t.operators(), func(name string) bool { return !recordsAlongside(have.Annotations, e.plan.Namespace+"/"+name) })
}

// takenCRD is taken for a CustomResourceDefinition: the step's own entry shows
// that the write of the last round arrived.
func (e *evaluation) takenCRD(t *target, have *apiextensionsv1.CustomResourceDefinition) bool {
	last, ran := e.d.in.LastRun[t.key]
	if !ran || last.Class != olmcore.ClassNone || have.Annotations[e.d.in.Config.stepHashKey()] == "" || !e.recordedAlongside(t, have) {
		return false
	}
	e.shared(t)
	return true
}

// changeCRD asks for the Update to after, with the own alongside entry, or finds
// that it would change nothing.
func (e *evaluation) changeCRD(t *target, have, after *apiextensionsv1.CustomResourceDefinition) verdict {
	annotations := map[string]any{}
	recorded := map[string]string{}
	for key, value := range after.Annotations {
		if strings.HasPrefix(key, alongsidePrefix) {
			recorded[key] = value
			delete(after.Annotations, key)
		}
	}
	for key, value := range alongsideOf(stringsOf(t.desired.metadata(), "annotations")) {
		recorded[key] = value
	}
	e.addAlongside(annotations, recorded, t.operators())
	own := 0
	for key, value := range annotations {
		after.Annotations, _ = olmcore.MergeLabels(after.Annotations, map[string]string{key: value.(string)})
		if strings.HasPrefix(value.(string), e.plan.Namespace+"/") {
			own++
		}
	}
	if own > maxRecorded {
		return verdict{outcome: blocked, message: fmt.Sprintf("CustomResourceDefinition %s records %d versions of namespace %s; there is room for %d",
			have.Name, own, e.plan.Namespace, maxRecorded)}
	}
	if same(have, after) {
		return e.awaitEstablished(have)
	}
	return e.asCRD(t, e.change(t, after))
}

// asCRD keeps the memory of a step that waits for its API.
func (e *evaluation) asCRD(t *target, v verdict) verdict {
	if e.plan.Status.Plan[t.steps[0]].Status == v1alpha1.StepStatusWaitingForAPI {
		v.status = v1alpha1.StepStatusWaitingForAPI
	}
	return v
}

// awaitEstablished decides about a CustomResourceDefinition whose content is
// right.
func (e *evaluation) awaitEstablished(crd *apiextensionsv1.CustomResourceDefinition) verdict {
	if established(crd) {
		return verdict{outcome: done}
	}
	since := crd.CreationTimestamp.Time
	if start := e.plan.Status.StartTime; start != nil && start.After(since) {
		since = start.Time
	}
	message := fmt.Sprintf("waiting for CustomResourceDefinition %s to be established", crd.Name)
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
	v := verdict{outcome: waiting, status: v1alpha1.StepStatusWaitingForAPI, message: message}
	v.deadline = since.Add(or(e.d.in.Config.CRDEstablishTimeout, DefaultCRDEstablishTimeout))
	if !e.preflight && !e.d.in.Now.Before(v.deadline) {
		v.outcome = blocked
	}
	return v
}

// unsafe says why a CustomResourceDefinition may not become desired.
func (e *evaluation) unsafe(have, desired *apiextensionsv1.CustomResourceDefinition) string {
	if problem := e.brokenResources(have, desired); problem != "" {
		return problem
	}
	var lost []string
	for _, stored := range have.Status.StoredVersions {
		if !slices.ContainsFunc(desired.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
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

// newerOwner names a newer ClusterServiceVersion of the same package that needs
// the CustomResourceDefinition as it is, if it serves what this step's needs.
func (e *evaluation) newerOwner(t *target, have *apiextensionsv1.CustomResourceDefinition) string {
	own := e.resolvingCSV(t.resolving)
	if own == nil {
		return ""
	}
	for _, d := range own.Spec.CustomResourceDefinitions.Owned {
		if d.Name == have.Name && !slices.ContainsFunc(have.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == d.Version && v.Served
		}) {
			return ""
		}
	}
	var newer []string
	for key, value := range have.Annotations {
		if !strings.HasPrefix(key, alongsidePrefix) {
			continue
		}
		namespace, name, _ := strings.Cut(value, "/")
		csv := e.csvAt(namespace, name)
		if csv == nil || copied(csv) || csv.DeletionTimestamp != nil || namespace == e.plan.Namespace && (slices.Contains(t.operators(), name) || name == own.Spec.Replaces) {
			continue
		}
		if owns(csv, have.Name) && newerThan(csv, own) {
			newer = append(newer, value)
		}
	}
	if len(newer) == 0 {
		return ""
	}
	return slices.Min(newer)
}

// resolvingCSV returns the ClusterServiceVersion that a step belongs to, as
// observed or as the plan describes it.
func (e *evaluation) resolvingCSV(name string) *v1alpha1.ClusterServiceVersion {
	if csv := e.csvs.find(name); csv != nil {
		return csv
	}
	for _, t := range e.order {
		if t.kind.gvk.Kind == kindCSV && t.key.Name == name {
			if o, err := e.typed(t, t.desired.object); err == nil {
				return o.(*v1alpha1.ClusterServiceVersion)
			}
		}
	}
	return nil
}

func (e *evaluation) csvAt(namespace, name string) *v1alpha1.ClusterServiceVersion {
	if namespace == e.plan.Namespace {
		return e.csvs.find(name)
	}
	for _, c := range e.d.in.Alongside {
		if c != nil && c.Namespace == namespace && c.Name == name {
			return c
		}
	}
	return nil
}

func (e *evaluation) isAnnounced(namespace, name string) bool {
	return slices.Contains(e.d.in.Announced, types.NamespacedName{Namespace: namespace, Name: name})
}

// convertedElsewhere reports that a live ClusterServiceVersion keeps the
// conversion webhook of the CustomResourceDefinition.
func (e *evaluation) convertedElsewhere(have *apiextensionsv1.CustomResourceDefinition) bool {
	if have.Spec.Conversion == nil || have.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return false
	}
	keeps := func(csv *v1alpha1.ClusterServiceVersion) bool {
		return csv != nil && csv.DeletionTimestamp == nil && !copied(csv) &&
			slices.ContainsFunc(csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
				return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, have.Name)
			})
	}
	return slices.ContainsFunc(e.d.in.ClusterServiceVersions, keeps) || slices.ContainsFunc(e.d.in.Alongside, func(csv *v1alpha1.ClusterServiceVersion) bool {
		return keeps(csv) && convertedIn(have.Spec.Conversion, csv.Namespace) // another cannot answer there
	})
}

// maxRecorded is how many versions of one namespace a CustomResourceDefinition
// records. Its annotations have an end, and other namespaces need room, too.
const maxRecorded = 20

// unrecordable says why a version that the steps of a definition are made for cannot
// be recorded on it: others look it up by what is recorded.
func (e *evaluation) unrecordable(t *target) string {
	operators := t.operators()
	for _, name := range operators {
		if !mayBeRecorded(name) {
			return fmt.Sprintf("CustomResourceDefinition %s: %q is no name of a ClusterServiceVersion", t.key.Name, name)
		}
	}
	if len(operators) > maxRecorded {
		return fmt.Sprintf("CustomResourceDefinition %s is made for %d versions; there is room for %d", t.key.Name, len(operators), maxRecorded)
	}
	return ""
}

func mayBeRecorded(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// convertedIn reports whether a conversion is that of a Service of a namespace.
func convertedIn(c *apiextensionsv1.CustomResourceConversion, namespace string) bool {
	return c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil &&
		c.Webhook.ClientConfig.Service.Namespace == namespace
}

func ownAlongside(value string) string {
	h := fnv.New64a()
	h.Write([]byte(value))
	return fmt.Sprintf("%s%x", alongsidePrefix, h.Sum64())
}

// recordsAlongside reports whether annotations name a ClusterServiceVersion,
// under whatever key.
func recordsAlongside(annotations map[string]string, value string) bool {
	for key, have := range annotations {
		if have == value && strings.HasPrefix(key, alongsidePrefix) {
			return true
		}
	}
	return false
}

// record adds an entry. OLM's hash is one for which another name of the same hash
// is easily found: an entry of another stays, and the new one gets a key of its
// own.
func record(annotations map[string]any, value string) {
	key := ownAlongside(value)
	if have, taken := annotations[key]; taken && have != value {
		key += "-" + olmcore.NameSuffix(20, value)
	}
	annotations[key] = value
}

// alongsideOf returns the entries of annotations that name
// ClusterServiceVersions.
func alongsideOf(annotations map[string]any) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if s, ok := value.(string); ok && strings.HasPrefix(key, alongsidePrefix) {
			out[key] = s
		}
	}
	return out
}

// addAlongside adds to annotations the recorded entries whose
// ClusterServiceVersion is still there or about to be, and the step's own.
func (e *evaluation) addAlongside(annotations map[string]any, recorded map[string]string, resolving []string) {
	for _, key := range slices.Sorted(maps.Keys(recorded)) {
		value := recorded[key]
		namespace, name, _ := strings.Cut(value, "/")
		if csv := e.csvAt(namespace, name); csv != nil && !copied(csv) || e.isAnnounced(namespace, name) {
			record(annotations, value)
		}
	}
	for _, name := range resolving {
		record(annotations, e.plan.Namespace+"/"+name)
	}
}
