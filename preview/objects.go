// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

// Change is what becomes of an object.
type Change string

// Changes.
const (
	Created Change = "created"
	Changed Change = "changed"
	// Replaced: it is deleted, and another one of its name is created.
	Replaced Change = "replaced"
	Deleted  Change = "deleted"
)

// order is that in which objects are told.
var order = map[Change]int{Created: 0, Changed: 1, Replaced: 2, Deleted: 3}

// Object is an object that becomes another one. Of one that is created the name ends with an asterisk where only the
// cluster knows how it ends.
type Object struct {
	Object olmcore.Ref `json:"object"`
	Change Change      `json:"change"`
	// Fields are those that differ, sorted by path, of one that is changed or replaced: at most MaxFields; More says how
	// many there are besides.
	Fields []Field `json:"fields,omitempty"`
	More   int     `json:"more,omitempty"`
}

// Field is a field that differs. Path is like spec.template.spec.containers[manager].image: entries of lists are named
// by their names where they have some. Values are texts as they are and all else as JSON, at most MaxValue bytes; empty
// where the field does not exist, and of Secrets never told.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Bounds of what is told of one object.
const (
	MaxFields = 50
	MaxValue  = 200
)

// objectOf tells what of an object becomes another, if it counts.
func objectOf(p pair) (o Object, counts bool) {
	o = Object{Object: named(p.either())}
	switch {
	case isHousekeeping(p.either()):
		return o, false
	case p.before == nil:
		o.Change = Created
		beginning := p.after.GetLabels()[generatedName]
		if beginning != "" && strings.HasPrefix(o.Object.Name, beginning+"-") {
			o.Object.Name = beginning + "-*"
		}
		return o, true
	case p.after == nil:
		o.Change = Deleted
		return o, true
	case p.before.GetUID() == p.after.GetUID():
		o.Change = Changed
	default:
		o.Change = Replaced
	}
	before, after := meaning(p.before), meaning(p.after)
	compare("", before, after, func(f Field) { o.Fields = append(o.Fields, f) })
	if o.Object.Kind == "Secret" {
		for i := range o.Fields {
			o.Fields[i].Before, o.Fields[i].After = "", ""
		}
	}
	o.More = max(0, len(o.Fields)-MaxFields)
	o.Fields = o.Fields[:len(o.Fields)-o.More]
	return o, len(o.Fields) > 0 || o.Change == Replaced
}

// isHousekeeping reports whether an object is what the approval is written into, the copy of a version that its
// operator is to be seen by, or the entry of a group and version that the API server serves itself.
func isHousekeeping(o olmcore.Object) bool {
	switch o := o.(type) {
	case *v1alpha1.InstallPlan:
		return true
	case *v1alpha1.ClusterServiceVersion:
		return o.IsCopied()
	case *apiregistrationv1.APIService:
		return o.Spec.Service == nil
	}
	return false
}

// generatedName is the label with the beginning of a name whose end only the cluster knows.
const generatedName = "olm.webhook-description-generate-name"

// meaning is what of an object counts to users: its spec or whatever it has in place of one, and its labels and
// annotations.
func meaning(o olmcore.Object) map[string]any {
	m, err := olmcore.ToMap(o)
	if err != nil {
		return nil
	}
	kept := map[string]any{}
	for key, value := range m {
		switch key {
		case "apiVersion", "kind", "status", "metadata":
		default:
			kept[key] = value
		}
	}
	metadata := map[string]any{}
	for name, values := range map[string]map[string]string{"labels": o.GetLabels(), "annotations": o.GetAnnotations()} {
		own := map[string]any{}
		for key, value := range values {
			own[key] = value
		}
		metadata[name] = own
	}
	kept["metadata"] = metadata
	return kept
}

// isNote reports whether a label or an annotation is one that OLM, the library or Kubernetes writes for itself.
func isNote(key string) bool {
	for _, prefix := range []string{"olm.", "olmcore/", "operators.coreos.com/", "operatorframework.io/",
		"deployment.kubernetes.io/", "kubectl.kubernetes.io/"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// compare yields the fields in which two JSON values differ, in order, but labels and annotations that OLM, the library
// or Kubernetes writes for itself.
func compare(path string, before, after any, yield func(Field)) {
	if reflect.DeepEqual(before, after) {
		return
	}
	was, wasMap := asMap(before)
	is, isMap := asMap(after)
	if !wasMap || !isMap || len(was) == 0 && len(is) == 0 {
		yield(Field{strings.TrimPrefix(path, "."), text(before), text(after)})
		return
	}
	names := maps.Clone(was)
	maps.Copy(names, is)
	isNotes := strings.HasSuffix(path, ".annotations") || strings.HasSuffix(path, ".labels")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if isNotes && isNote(strings.Trim(name, ".[]")) {
			continue
		}
		compare(path+name, was[name], is[name], yield)
	}
}

// asMap returns the fields of an object, or the entries of a list by what names them, with what stands for them in a
// path.
func asMap(value any) (map[string]any, bool) {
	switch v := value.(type) {
	case nil:
		return map[string]any{}, false
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			if strings.ContainsAny(key, "./[]") {
				m["["+key+"]"] = value
			} else {
				m["."+key] = value
			}
		}
		return m, true
	case []any:
		m := make(map[string]any, len(v))
		for i, entry := range v {
			name := strconv.Itoa(i)
			if fields, is := entry.(map[string]any); is {
				if own, named := fields["name"].(string); named {
					name = own
				}
			}
			m["["+name+"]"] = entry
		}
		return m, len(m) == len(v) // else names repeat, and the list is one value
	}
	return nil, false
}

// text is a value in a line, cut where it is long.
func text(value any) string {
	line, is := value.(string)
	if value != nil && !is {
		data, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		line = string(data)
	}
	if len(line) > MaxValue {
		return strings.ToValidUTF8(line[:MaxValue], "") + "..."
	}
	return line
}
