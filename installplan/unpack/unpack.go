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
// image into a ConfigMap. Its ServiceAccount may write nothing else. If the ConfigMap is complete, the state of the Job
// does not matter. A failed try is repeated after the retry interval. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, UnpackBundle.
// Differs: the Job is created only after its permissions are observed. A Job is replaced only if its input differs. A
// repeated lookup does not wait for another event.
func Bundle(in Input) (Outcome, error) {
	err := in.validate()
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Lookup: *in.Lookup.DeepCopy()}
	switch {
	case !isPending(in.Lookup):
		return out, nil
	case !exists(in.CatalogSource):
		out.condition(in.Now, v1alpha1.BundleLookupPending, "CatalogSourceMissing", "referenced catalogsource not found")
		return out, nil
	}
	content, complete := bundle.Complete(in.ConfigMap, in.Lookup.Path)
	if complete {
		out.Diagnostics = content.Found
	}
	t := targetOf(in)
	if in.ConfigMap != nil && t.isUnmanaged(in.ConfigMap) {
		out.warn(ReasonNameTaken, in.ConfigMap, "it is not one that a bundle is unpacked into")
	}
	lacks, owns := t.configMap(in.ConfigMap)
	if lacks != nil {
		out.Actions = append(out.Actions, lacks)
	}
	if complete {
		if out.Bundle, err = bundleOf(in, content); err != nil {
			out.condition(in.Now, v1alpha1.BundleLookupFailed, ReasonBundleInvalid, err.Error())
			out.warn(ReasonBundleInvalid, in.ConfigMap, "%s", err)
			return out, nil
		}
		out.Lookup.RemoveCondition(v1alpha1.BundleLookupPending)
		out.Digest = content.Digest
		return out, nil
	}
	if owns {
		lacks, ready := t.permissions(in)
		out.Actions = append(out.Actions, lacks...)
		if ready {
			out.runJob(in, t)
			return out, nil
		}
	}
	out.notStarted(in.Now)
	return out, nil
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

// bundleOf returns the bundle of a complete ConfigMap. The error says why it cannot be installed.
func bundleOf(in Input, content bundle.Content) (*olmcore.Bundle, error) {
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
