// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore"
)

// judge judges the custom resources that the input has. A plan that gives a definition other schemas is refused while
// the input has none of its resources, and does not say that there are none.
func judge(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
	verdicts, err := crvalidation.Judge(ctx, r, changes)
	for i, v := range verdicts {
		if v.ReadError != "" {
			verdicts[i].ReadError += fmt.Sprintf("; add what kubectl get %s -A -o yaml prints to the input, "+
				"with --all-resources where that is nothing, or judge no custom resources (--judge=false)", v.CustomResourceDefinition)
		}
	}
	return verdicts, err
}

// scopesOf are the kinds that the definitions among some objects define.
func scopesOf(objects []olmcore.Object) (scopes []olmcore.Scope) {
	for _, o := range objects {
		if crd, is := o.(*apiextensionsv1.CustomResourceDefinition); is {
			scopes = append(scopes, olmcore.Scope{Kind: schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}})
		}
	}
	return scopes
}
