// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/release"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeWhole fills the Before of an action for a slim copy, whose stored content is not known. Before gets a content
// that differs from the prototype in every field, and that has every map key of the stored content. A merge patch from
// it to the prototype sets all fields of the prototype and removes all other keys. So it writes the whole content.
func (p *prototype) writeWhole(whole *v1alpha1.ClusterServiceVersion, slim outdated) {
	keys := slim.copy.content.keys
	unlike := p.unlike[keys]
	if unlike == nil {
		unlike = unlikeOf(&p.copy, keys)
		p.unlike[keys] = unlike
	}
	whole.TypeMeta, whole.ObjectMeta = slim.copy.csv.TypeMeta, slim.copy.csv.ObjectMeta
	if slim.onlyStatus {
		whole.Annotations = p.copy.Annotations
		whole.Spec = p.copy.Spec
		whole.Status = unlike.Status
		return
	}
	whole.Annotations, whole.Spec = unlike.Annotations, unlike.Spec
}

// unlikeOf returns a content that differs from the content of c in every field. Lists are compared as a whole, because
// a merge patch replaces them. Its maps contain the keys that c lacks. keys is the value of annotationKeys.
func unlikeOf(c *v1alpha1.ClusterServiceVersion, keys string) *v1alpha1.ClusterServiceVersion {
	var known mapKeys
	_ = json.Unmarshal([]byte(keys), &known) // only Slim writes them
	u := &v1alpha1.ClusterServiceVersion{}
	u.Spec = unlike(reflect.ValueOf(c.Spec)).Interface().(v1alpha1.ClusterServiceVersionSpec)
	u.Status = unlike(reflect.ValueOf(c.Status)).Interface().(v1alpha1.ClusterServiceVersionStatus)
	u.Annotations = lacking(c.Annotations, known.Annotations)
	u.Spec.Labels, u.Spec.Annotations = lacking(c.Spec.Labels, known.SpecLabels), lacking(c.Spec.Annotations, known.SpecAnnotations)
	if c.Spec.Selector != nil {
		u.Spec.Selector.MatchLabels = lacking(c.Spec.Selector.MatchLabels, known.MatchLabels)
	}
	return u
}

// lacking returns a map with the keys that m does not contain.
func lacking(m map[string]string, keys []string) map[string]string {
	missing := map[string]string{}
	for _, key := range keys {
		if _, has := m[key]; !has {
			missing[key] = ""
		}
	}
	return missing
}

// scalars maps each struct type that JSON encodes as one value to two different values of it.
var scalars = map[reflect.Type][2]any{
	reflect.TypeFor[version.OperatorVersion](): {
		version.OperatorVersion{}, version.OperatorVersion{Version: semver.Version{Major: 1}},
	},
	reflect.TypeFor[release.OperatorRelease](): {
		release.OperatorRelease{}, release.OperatorRelease{Release: []semver.PRVersion{{VersionNum: 1, IsNum: true}}},
	},
	reflect.TypeFor[metav1.Time](): {metav1.Time{}, metav1.NewTime(time.Unix(1, 0))},
}

// unlike returns a value that differs from v. If v is a slice, map or pointer with a value, the result is empty, except
// for a pointer to a struct, which gets another struct. An empty slice or pointer gets a value.
func unlike(v reflect.Value) reflect.Value {
	u := reflect.New(v.Type()).Elem()
	if two, is := scalars[v.Type()]; is {
		if v.IsZero() {
			return reflect.ValueOf(two[1])
		}
		return reflect.ValueOf(two[0])
	}
	switch v.Kind() {
	case reflect.String:
		u.SetString(v.String() + "-")
	case reflect.Bool:
		u.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		u.SetInt(v.Int() + 1)
	case reflect.Slice:
		if v.Len() == 0 {
			u.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	case reflect.Pointer:
		_, scalar := scalars[v.Type().Elem()]
		switch {
		case v.IsNil():
			u.Set(reflect.New(v.Type().Elem()))
			u.Elem().Set(unlike(u.Elem()))
		case !scalar && v.Elem().Kind() == reflect.Struct:
			u.Set(reflect.New(v.Type().Elem()))
			u.Elem().Set(unlike(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			u.Field(i).Set(unlike(v.Field(i)))
		}
	}
	return u
}
