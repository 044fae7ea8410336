// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/olmcore"
)

// index makes the observed objects findable.
func (e *evaluation) index() error {
	in := e.d.in
	e.csvs = make(map[string]*v1alpha1.ClusterServiceVersion, len(in.ClusterServiceVersions))
	e.crds = make(map[string]*apiextensionsv1.CustomResourceDefinition, len(in.CustomResourceDefinitions))
	e.objects = make(map[olmcore.Key]olmcore.Object, len(in.Objects)+len(in.Subscriptions))
	ignored := 0
	for i, c := range in.ClusterServiceVersions {
		if c == nil {
			ignored++
		} else if e.csvs[c.Name] != nil && e.csvs[c.Name] != c {
			return repeated("ClusterServiceVersions", i, c)
		} else {
			e.csvs[c.Name] = c
		}
	}
	for i, c := range in.CustomResourceDefinitions {
		if c == nil {
			ignored++
		} else if e.crds[c.Name] != nil && e.crds[c.Name] != c {
			return repeated("CustomResourceDefinitions", i, c)
		} else {
			e.crds[c.Name] = c
		}
	}
	for i, o := range in.Objects {
		key := olmcore.KeyOf(o)
		if key == (olmcore.Key{}) {
			ignored++
		} else if e.objects[key] != nil && e.objects[key] != o {
			return repeated("Objects", i, o)
		} else {
			e.objects[key] = o
		}
	}
	for i, s := range in.Subscriptions {
		if s == nil {
			ignored++
			continue
		}
		key := olmcore.KeyOf(s)
		if e.objects[key] != nil && e.objects[key].GetUID() != s.UID {
			return repeated("Subscriptions", i, s)
		}
		e.objects[key] = s
	}
	if ignored > 0 {
		e.d.warn(ReasonObjectIgnored, "", "%d entries of the input are nil", ignored)
	}
	return nil
}

func repeated(field string, i int, o olmcore.Object) error {
	return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: "repeats " + olmcore.KeyOf(o).String()}
}

// find returns the observed object of a key; nil when there is none.
func (e *evaluation) find(key olmcore.Key) olmcore.Object {
	switch key.Kind {
	case kindCSV:
		if c := e.csvs[key.Name]; c != nil {
			return c
		}
		return nil
	case kindCRD:
		if c := e.crds[key.Name]; c != nil {
			return c
		}
		return nil
	}
	return e.objects[key]
}
