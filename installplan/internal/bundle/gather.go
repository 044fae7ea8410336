// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// byBundle looks InstallPlans of all namespaces up by the bundles that they need.
var byBundle = olmcore.Lookup{
	Kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind), Key: "bundles",
	TermsOf: func(o olmcore.Object, add func(olmcore.Term)) {
		if plan, is := o.(*v1alpha1.InstallPlan); is {
			for key := range Needed(plan) {
				add(termOf(key))
			}
		}
	},
}

func termOf(bundle types.NamespacedName) olmcore.Term {
	return olmcore.Term{Of: "bundle", Value: bundle.String()}
}

// Needing reads every InstallPlan, in any namespace, that needs one of the given unpacked bundles: see Needed. The list
// is incomplete if the Reader does not read InstallPlans. If the Reader is not an
// olmcore.IndexedReader, all plans are read.
func Needing(ctx context.Context, r olmcore.Reader, bundles []*corev1.ConfigMap) (olmcore.Observed[*v1alpha1.InstallPlan], error) {
	var terms []olmcore.Term
	for _, cm := range bundles {
		terms = append(terms, termOf(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}))
	}
	objects, err := olmcore.Indexed(r).Find(ctx, r, byBundle, terms...)
	if errors.Is(err, olmcore.ErrNotRead) {
		return olmcore.Observed[*v1alpha1.InstallPlan]{}, nil
	}
	found := olmcore.Observed[*v1alpha1.InstallPlan]{Complete: err == nil}
	for _, o := range objects {
		if plan, is := o.(*v1alpha1.InstallPlan); is {
			found.Items = append(found.Items, plan)
		}
	}
	return found, err
}
