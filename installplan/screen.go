// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

// screen decides about one step by itself: it is done, it is refused, or it
// becomes part of a target.
func (e *evaluation) screen(i int, s *v1alpha1.Step) {
	if v, ok := e.screenStatus(s); ok {
		e.verdicts[i] = v
		return
	}
	t, v := e.describe(i, s)
	if t == nil {
		if v.absentAPI && s.Optional {
			e.d.diagnose(olmcore.Info, ReasonOptionalStepSkipped, stepPath(i), "%s", v.message)
			v = verdict{outcome: done, status: v1alpha1.StepStatusNotCreated}
		}
		v.status = or(v.status, s.Status)
		v.asked = v.status
		e.verdicts[i] = v
		return
	}
	have := e.targets[t.key]
	if have == nil {
		t.observed = e.find(t.key)
		if e.targets == nil {
			e.targets = map[olmcore.Key]*target{}
		}
		e.targets[t.key] = t
		e.order = append(e.order, t)
		return
	}
	have.steps = append(have.steps, i)
	have.also(t.resolving)
	if !have.kind.createOnly && !t.kind.createOnly {
		have.desired.object = fold(have.desired.object, t.desired.object, have.kind.gvk.Kind)
	}
}

// screenStatus answers from what is recorded and from the presence of the
// object, without reading the manifest, where that is enough.
func (e *evaluation) screenStatus(s *v1alpha1.Step) (verdict, bool) {
	keep := verdict{status: s.Status, asked: s.Status}
	if s.Resource.Kind == "" || s.Resource.Name == "" {
		keep.outcome, keep.message = invalid, errInvalidPlan
		return keep, true
	}
	switch s.Status {
	case v1alpha1.StepStatusUnknown, v1alpha1.StepStatusNotPresent, v1alpha1.StepStatusWaitingForAPI:
		return verdict{}, false
	case v1alpha1.StepStatusCreated, v1alpha1.StepStatusPresent:
	case v1alpha1.StepStatusNotCreated:
		if s.Optional {
			keep.outcome = done
			return keep, true
		}
		fallthrough
	default:
		keep.outcome, keep.message = invalid, errInvalidPlan
		return keep, true
	}
	key, ok := e.keyOf(s)
	if !ok {
		return verdict{}, false
	}
	o := e.find(key)
	if o == nil {
		return verdict{}, false
	}
	if csv, isCSV := o.(*v1alpha1.ClusterServiceVersion); isCSV && copied(csv) {
		return verdict{}, false
	}
	keep.outcome = done
	if o.GetDeletionTimestamp() != nil {
		keep.outcome, keep.message = waiting, finishDeleting(key)
	}
	return keep, true
}

func finishDeleting(key olmcore.Key) string {
	return fmt.Sprintf("waiting for %s %s to finish deleting", key.Kind, key.Name)
}

// keyOf returns the object that a step names, going by its resource alone.
func (e *evaluation) keyOf(s *v1alpha1.Step) (olmcore.Key, bool) {
	return stepKey(s, e.plan.Namespace, e.d.in.CustomResourceDefinitions)
}

func stepKey(s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition) (olmcore.Key, bool) {
	key := olmcore.Key{Group: s.Resource.Group, Kind: s.Resource.Kind, Name: s.Resource.Name}
	if k, known := knownKinds[s.Resource.Kind]; known {
		key.Group, key.Kind = k.gvk.Group, k.gvk.Kind
		if k.namespaced {
			key.Namespace = namespace
		}
		return key, true
	}
	api := lookUp(schema.GroupVersionKind{Group: key.Group, Version: s.Resource.Version, Kind: key.Kind}, crds)
	if api.namespaced {
		key.Namespace = namespace
	}
	return key, api.kindServed
}

// describe reads what a step wants; without a target the verdict says what is
// wrong.
func (e *evaluation) describe(i int, s *v1alpha1.Step) (*target, verdict) {
	t := &target{steps: []int{i}, resolving: s.Resolving}
	kind, known := knownKinds[s.Resource.Kind]
	if s.Resource.Kind == kindPullSecret {
		t.kind, t.key = kind, olmcore.Key{Kind: "Secret", Namespace: e.plan.Namespace, Name: s.Resource.Name}
		return t, verdict{}
	}
	text := s.Resource.Manifest
	if ref, ok := parseBundleRef(text); ok {
		var v verdict
		if text, v = e.literal(s, ref); v.refused() {
			return nil, v
		}
	}
	m, err := parseManifest(text)
	if err != nil {
		v := verdict{outcome: invalid, message: parseError(s, known, err.Error())}
		if errors.Is(err, errEmpty) {
			v.outcome = blocked
		}
		return nil, v
	}
	if m.extra {
		e.d.warn(ReasonExtraDocumentsIgnored, stepPath(i), "the manifest of %s holds more than one document", s.Resource.Name)
	}
	if m.gvk.Kind == "" {
		m.gvk = schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
		if known {
			m.gvk = kind.gvk
		}
	}
	if !known {
		var v verdict
		if kind, v = e.genericKind(s, m.gvk); v.outcome != pending {
			return nil, v
		}
	} else if v := checkKind(s, kind, m.gvk); v.refused() {
		return nil, v
	} else {
		m.gvk = kind.gvk
	}
	var keys []olmcore.KeyCase
	m.object, keys = olmcore.FoldKeys(m.object, olmcore.NewObject(m.gvk))
	for _, key := range keys {
		e.d.warn(ReasonKeyCase, stepPath(i), "the manifest of %s: %s", s.Resource.Name, key)
	}
	if m.name == "" {
		return nil, verdict{outcome: blocked, message: fmt.Sprintf("object of step %s has no name", s.Resource.Name)}
	}
	if m.name != s.Resource.Name {
		e.d.warn(ReasonStepNameDiffers, stepPath(i), "the step names %s, its manifest %s", s.Resource.Name, m.name)
	}
	if kind.labelled && len(validation.IsValidLabelValue(s.Resolving)) > 0 {
		return nil, verdict{outcome: invalid, message: fmt.Sprintf("%s %s: label %s=%q is not valid",
			kind.gvk.Kind, m.name, olmcore.LabelOwner, s.Resolving)}
	}
	t.kind, t.desired = kind, m
	t.key = olmcore.Key{Group: m.gvk.Group, Kind: m.gvk.Kind, Name: m.name}
	m.object["apiVersion"], m.object["kind"] = m.gvk.ToAPIVersionAndKind()
	delete(m.metadata(), "namespace")
	if kind.namespaced {
		t.key.Namespace = e.plan.Namespace
		m.metadata()["namespace"] = e.plan.Namespace
	}
	return t, verdict{}
}

func parseError(s *v1alpha1.Step, known bool, problem string) string {
	switch {
	case s.Resource.Kind == kindCRD:
		return "v1 crd unmarshaling failed: " + problem
	case known:
		return fmt.Sprintf("error parsing step manifest: %s: %s", s.Resource.Name, problem)
	}
	return fmt.Sprintf("error decoding %s object to an unstructured object: %s", s.Resource.Name, problem)
}

// checkKind refuses a manifest of another kind than its step's. One that names the
// kind and no group is of the step's.
func checkKind(s *v1alpha1.Step, k stepKind, gvk schema.GroupVersionKind) verdict {
	if gvk.Group == "" && gvk.Kind == k.gvk.Kind {
		gvk.Group = k.gvk.Group
	}
	switch {
	case gvk.GroupKind() != k.gvk.GroupKind():
		return verdict{outcome: invalid, message: fmt.Sprintf("error parsing step manifest: %s: kind is %s",
			s.Resource.Name, gvk.GroupKind())}
	case gvk.Kind == kindCRD && gvk.Version == "v1beta1":
		return verdict{outcome: blocked, absentAPI: true, message: notServed(s.Resource.Kind, s.Resource.Name, gvk)}
	case gvk.Kind == kindCRD && gvk.Version != k.gvk.Version:
		return verdict{outcome: invalid, message: "CRD APIVersion from manifest not supported: " + gvk.GroupVersion().String()}
	}
	return verdict{}
}

// genericKind returns how a kind is applied that the package knows nothing
// special of, with a pending verdict; any other verdict says why it cannot be
// applied now.
func (e *evaluation) genericKind(s *v1alpha1.Step, gvk schema.GroupVersionKind) (stepKind, verdict) {
	if !slices.Contains(e.d.in.Config.supportedKinds(), s.Resource.Kind) {
		return stepKind{}, verdict{
			outcome: invalid, absentAPI: true, status: v1alpha1.StepStatusUnsupportedResource, message: errInvalidPlan,
		}
	}
	if gvk.Kind != s.Resource.Kind {
		return stepKind{}, verdict{outcome: invalid, message: parseError(s, true, "kind is "+gvk.GroupKind().String())}
	}
	api := lookUp(gvk, e.d.in.CustomResourceDefinitions)
	if api.kindServed {
		return stepKind{
			gvk: gvk, namespaced: api.namespaced, owned: api.namespaced, labelled: !api.namespaced,
			generic: true, word: "unstructured object:",
		}, verdict{}
	}
	if name := e.definedHere(gvk); name != "" {
		return stepKind{}, verdict{outcome: waiting, follows: true,
			message: fmt.Sprintf("waiting for CustomResourceDefinition %s to be established", name)}
	}
	message := notServed(s.Resource.Kind, s.Resource.Name, gvk)
	if api.versionServed {
		message = fmt.Sprintf("Unable to find GVK in discovery: %s %s %s", gvk.Group, gvk.Version, gvk.Kind)
	}
	return stepKind{}, verdict{outcome: blocked, absentAPI: true, message: message}
}

// definedHere names the step of this plan that will define a kind, as long as
// it is not done.
func (e *evaluation) definedHere(gvk schema.GroupVersionKind) string {
	for _, t := range e.order {
		if t.kind.gvk.Kind != kindCRD || t.satisfied {
			continue
		}
		spec, _ := t.desired.object["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		if spec["group"] == gvk.Group && names["kind"] == gvk.Kind {
			return t.key.Name
		}
	}
	return ""
}

func notServed(kind, name string, gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s %s %s: GroupVersionKind %s not found on the cluster. "+
		"This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
		notServedPrefix, kind, name, gvk)
}

// copied reports whether a ClusterServiceVersion is the copy of one in another
// namespace.
func copied(csv *v1alpha1.ClusterServiceVersion) bool {
	operatorNamespace, annotated := csv.Annotations["olm.operatorNamespace"]
	return csv.Status.Reason == v1alpha1.CSVReasonCopied || csv.Labels[olmcore.LabelCopiedFrom] != "" ||
		annotated && operatorNamespace != csv.Namespace
}

// refusals are how messages of what is found before anything is applied begin
// or what they contain; a plan that failed of one may heal.
var refusals = []string{
	notServedPrefix, "Unable to find GVK in discovery: ", "pre-existing CRD owners found for ", "error checking crd owners for: ",
	"a copy of ClusterServiceVersion ", "risk of data loss updating ", "error validating existing CRs against ",
	"error generating ownerrefs for ", "error finding unpacked bundle configmap ", "error loading unpacked bundle configmap ",
	"couldn't find unpacked step ", "failed to load bundle properties ",
	"bundle ", "secret ", "serviceaccounts ", "CustomResourceDefinition ", waitingPrefix, "object of step ",
	"could not find any versions in the new CRD", "immutable: ",
}

const (
	notServedPrefix = "api-server resource not found installing"
	immutableMiddle = " exists and its "
	errInvalidPlan  = "the InstallPlan contains invalid data"
)

func isRefusal(message string) bool {
	return slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(message, r) }) ||
		strings.Contains(message, unmanagedMiddle) ||
		strings.HasSuffix(message, " is immutable") && strings.Contains(message, immutableMiddle)
}
