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

// writeWhole writes what stands for a slim copy as the Before of an action. Its content is not the stored one, which is
// not known, but one that differs from the prototype in every field, and has every key that the stored one has. So a
// merge patch from it to the prototype sets all that the prototype has and removes all that it lacks, whatever is
// stored: it is a full write.
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

// unlikeOf returns a content that differs from that of c in every field outside of lists, which a merge patch replaces,
// and has of maps the keys that c lacks.
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

func lacking(m map[string]string, keys []string) map[string]string {
	missing := map[string]string{}
	for _, key := range keys {
		if _, has := m[key]; !has {
			missing[key] = ""
		}
	}
	return missing
}

// scalars are the types that JSON has as one value, each with two that differ.
var scalars = map[reflect.Type][2]any{
	reflect.TypeFor[version.OperatorVersion](): {version.OperatorVersion{}, version.OperatorVersion{Version: semver.Version{Major: 1}}},
	reflect.TypeFor[release.OperatorRelease](): {release.OperatorRelease{}, release.OperatorRelease{Release: []semver.PRVersion{{VersionNum: 1, IsNum: true}}}},
	reflect.TypeFor[metav1.Time]():             {metav1.Time{}, metav1.NewTime(time.Unix(1, 0))},
}

// unlike returns a value that differs from v: absent for a list, map or pointer that is there, and the other way round.
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
