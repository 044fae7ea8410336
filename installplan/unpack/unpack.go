// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// Bundle returns the next writes to unpack one bundle image, or the unpacked bundle. A Job copies the files of the
// image into a ConfigMap. The ServiceAccount of the Job may write only this ConfigMap. If the ConfigMap is complete,
// the state of the Job is ignored. After a Job fails, a new Job is created once the retry interval has passed. If the
// lookup is not pending, Bundle returns it unchanged. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, UnpackBundle.
// Differs: the Job is created only after its permissions are observed. A Job is replaced only if its input differs.
// After a failed Job, RequeueAfter is set to the rest of the retry interval, so a retry does not depend on a watch
// event.
func Bundle(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	return decide(in), nil
}

func decide(in Input) Outcome {
	switch {
	case !isPending(in.Lookup):
		return outcomeOf(&in, condition{}, olmcore.Result{})
	case !exists(in.CatalogSource):
		return outcomeOf(&in, pending("CatalogSourceMissing", "referenced catalogsource not found"), olmcore.Result{})
	}
	f := observe(&in)
	result, owns := f.keepConfigMap()
	switch {
	case f.complete:
		return f.finish(result)
	case !owns:
		return outcomeOf(&in, notStarted, result)
	}
	permissions, ready := f.target.keepPermissions(&in)
	result = result.And(do(permissions...))
	if !ready {
		return outcomeOf(&in, notStarted, result)
	}
	state, job := f.runJob()
	return outcomeOf(&in, state, result.And(job))
}

// facts contains the observed state of a pending bundle image. It is read-only after observe has returned it.
type facts struct {
	in     *Input // as the caller passed it
	target target
	// content is the content of the ConfigMap. complete is true if the whole bundle is unpacked.
	content  bundle.Content
	complete bool
}

// observe returns the facts of an Input whose CatalogSource exists.
func observe(in *Input) *facts {
	content, complete := bundle.Complete(in.ConfigMap, in.Lookup.Path)
	return &facts{in: in, target: targetOf(in), content: content, complete: complete}
}

// outcomeOf returns an Outcome with a condition of the lookup and a Result.
func outcomeOf(in *Input, c condition, result olmcore.Result) Outcome {
	lookup := *in.Lookup.DeepCopy()
	if c != (condition{}) {
		lookup.Conditions = c.setIn(lookup, in.Now)
	}
	return Outcome{Result: result, Lookup: lookup}
}

// do returns a Result with Actions.
func do(actions ...olmcore.Action) olmcore.Result { return olmcore.Result{Actions: actions} }

// warn returns a Result with a Diagnostic about an object.
func warn(reason string, target olmcore.Object, format string, args ...any) olmcore.Result {
	d := olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(target), "", format, args...)
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{d}}
}

// keepConfigMap creates the ConfigMap or repairs its owner. owns reports whether it can own the other objects.
func (f *facts) keepConfigMap() (result olmcore.Result, owns bool) {
	if f.complete {
		result.Diagnostics = f.content.Found
	}
	cm := f.in.ConfigMap
	if cm != nil && f.target.isUnmanaged(cm) {
		result = result.And(warn(ReasonNameTaken, cm, "it was not created for a bundle"))
	}
	action, owns := f.target.keepConfigMap(cm)
	if action != nil {
		result = result.And(do(action))
	}
	return result, owns
}

// finish returns an Outcome with the unpacked bundle, or with the reason why it cannot be installed.
func (f *facts) finish(result olmcore.Result) Outcome {
	unpacked, err := bundleOf(f.in, f.content)
	if err != nil {
		failed := condition{v1alpha1.BundleLookupFailed, ReasonBundleInvalid, err.Error()}
		return outcomeOf(f.in, failed, result.And(warn(ReasonBundleInvalid, f.in.ConfigMap, "%s", err)))
	}
	out := outcomeOf(f.in, condition{}, result)
	out.Lookup.RemoveCondition(v1alpha1.BundleLookupPending)
	out.Bundle, out.Digest = unpacked, f.content.Digest
	return out
}

// isPending reports whether a bundle still has to be unpacked and did not fail.
func isPending(lookup v1alpha1.BundleLookup) bool {
	return lookup.GetCondition(v1alpha1.BundleLookupFailed).Status != corev1.ConditionTrue &&
		lookup.GetCondition(v1alpha1.BundleLookupPending).Status == corev1.ConditionTrue
}

// exists reports whether a CatalogSource exists and is not being deleted.
func exists(source *v1alpha1.CatalogSource) bool {
	return source != nil && source.DeletionTimestamp == nil && source.UID != ""
}

// bundleOf returns the bundle of a complete ConfigMap. The error explains why it cannot be installed.
func bundleOf(in *Input, content bundle.Content) (*olmcore.Bundle, error) {
	unpacked, err := content.Bundle, error(nil)
	unpacked.Image = in.Lookup.Path
	if unpacked.Properties, err = bundle.DecodeProperties(in.Lookup.Properties); err != nil {
		return nil, fmt.Errorf("failed to load bundle properties for %q: %w", in.Lookup.Identifier, err)
	}
	operator := olmcore.Operator{Name: cmp.Or(in.Lookup.Identifier, content.Version()), Replaces: in.Lookup.Replaces, Bundle: unpacked}
	if _, err := bundle.Version(operator, in.ConfigMap.Namespace); err != nil {
		return nil, bundle.About(operator.Name, err)
	}
	return &unpacked, nil
}
