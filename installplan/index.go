// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"

	"github.com/olmcore/olm/olmcore"
)

// named finds objects of one kind and namespace by their names. Few are looked
// through, many get a map.
type named[T interface {
	comparable
	olmcore.Object
}] struct {
	all    []T
	byName map[string]T
}

const fewObjects = 8

// find returns the object of a name, the zero T when there is none.
func (n *named[T]) find(name string) (found T) {
	if n.byName != nil {
		return n.byName[name]
	}
	var absent T
	for _, o := range n.all {
		if o != absent && o.GetName() == name {
			return o
		}
	}
	return absent
}

// index fills n and counts nil entries; the index of one that repeats another's
// name, else -1.
func (n *named[T]) index(all []T, ignored *int) int {
	var absent T
	n.all = all
	if len(all) > fewObjects {
		n.byName = make(map[string]T, len(all))
	}
	for i, o := range all {
		if o == absent {
			*ignored++
			continue
		}
		if have := n.find(o.GetName()); have != absent && have != o {
			return i
		}
		if n.byName != nil {
			n.byName[o.GetName()] = o
		}
	}
	return -1
}

// index makes the observed objects findable.
func (e *evaluation) index() error {
	in := e.d.in
	ignored := 0
	if i := e.csvs.index(in.ClusterServiceVersions, &ignored); i >= 0 {
		return repeated("ClusterServiceVersions", i, in.ClusterServiceVersions[i])
	}
	if i := e.crds.index(in.CustomResourceDefinitions, &ignored); i >= 0 {
		return repeated("CustomResourceDefinitions", i, in.CustomResourceDefinitions[i])
	}
	if n := len(in.Objects) + len(in.Subscriptions); n > 0 {
		e.objects = make(map[olmcore.Key]olmcore.Object, n)
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
		if c := e.csvs.find(key.Name); c != nil {
			return c
		}
		return nil
	case kindCRD:
		if c := e.crds.find(key.Name); c != nil {
			return c
		}
		return nil
	}
	return e.objects[key]
}
