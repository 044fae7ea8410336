// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from text, as people write it and kubectl prints it: YAML documents, a
// stream of JSON values, and lists of either. It opens no files.
//
//	read, err := manifest.Read("all.yaml", f)                                  // what stands there, with its place
//	objects, err := manifest.Distinct(read)                                    // each object once
//	err = cluster.Load(objects...)                                             // into a fake.Cluster, or
//	snapshot, err := olmcore.NewSnapshot(objects, manifest.Scopes(objects, false)...) // to reconcile from
//
// Kinds that olmcore knows become their Go types, all others are *unstructured.Unstructured. Every error is an *Error:
// it names file and document, and its reason the field.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmcore/olm/internal/spelling"
	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
)

// Error says which document of which file could not be read, and why.
type Error struct {
	File string
	// Document counts from 1.
	Document int
	Err      error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: document %d: %v", e.File, e.Document, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Object is an object and where it was read.
type Object struct {
	olmcore.Object
	File string
	// Document counts from 1.
	Document int
	// Keys are those that are spelt otherwise than the API does; a kind that is near one which is known is among them.
	Keys []olmcore.KeyCase
}

// Limits of what Read reads.
const (
	// MaxDocument bounds one document, in bytes, as text and as the JSON that it becomes.
	MaxDocument = 256 << 20
	// MaxDepth bounds lists within lists.
	MaxDepth = 8
)

// Read returns the objects of all documents in r: YAML documents or a stream of JSON values. Empty documents are
// skipped; lists (a kind that ends in "List", with items) are replaced by their items. file is for errors, which are
// always an *Error; nothing is returned with one. A key of YAML that is there twice is one, of JSON the last counts.
// YAML aliases may not make a document many times as large as its text.
func Read(file string, r io.Reader) ([]Object, error) {
	stream := yamljson.NewStream(r, MaxDocument)
	var objects []Object
	var undecodable error // it counts once all of the text is known to be documents
	for n := 1; ; n++ {
		document, err := next(stream)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &Error{File: file, Document: n, Err: err}
		}
		if undecodable != nil {
			continue
		}
		found, err := decode(document, 0)
		if err != nil {
			undecodable, objects = &Error{File: file, Document: n, Err: err}, nil
		}
		for _, o := range found {
			o.File, o.Document = file, n
			objects = append(objects, o)
		}
	}
	return objects, undecodable
}

// Distinct returns the objects alone. An object without a name, and one that is there already, is an *Error.
func Distinct(read []Object) ([]olmcore.Object, error) {
	objects := make([]olmcore.Object, len(read))
	seen := make(map[olmcore.Key]Object, len(read))
	for i, o := range read {
		key := olmcore.KeyOf(o.Object)
		if o.GetName() == "" {
			return nil, &Error{o.File, o.Document, &olmcore.InputError{Field: key.Kind + ".metadata.name", Problem: "is empty"}}
		}
		if first, twice := seen[key]; twice {
			return nil, &Error{o.File, o.Document, fmt.Errorf("%s stands in %s, document %d, already", key, first.File, first.Document)}
		}
		seen[key], objects[i] = o, o.Object
	}
	return objects, nil
}

// next returns the next document as JSON. The error is io.EOF at the end.
func next(stream *yamljson.Stream) ([]byte, error) {
	document, err := stream.Next()
	if err == nil && len(document.Repeated) > 0 {
		return nil, &olmcore.InputError{Field: strings.TrimPrefix(document.Repeated[0], "."), Problem: "is there twice"}
	}
	return document.JSON, err
}

func decode(document []byte, depth int) ([]Object, error) {
	if len(document) == 0 || string(document) == "null" {
		return nil, nil
	}
	items, isList := itemsOf(document)
	if !isList {
		o, keys, err := olmcore.DecodeKeys(document)
		if err != nil {
			return nil, err
		}
		return []Object{{Object: o, Keys: append(keys, misspeltKind(o)...)}}, nil
	}
	if depth == MaxDepth {
		return nil, fmt.Errorf("lists are nested more than %d deep", MaxDepth)
	}
	var objects []Object
	for i := 0; items.More(); i++ {
		var item json.RawMessage
		if err := items.Decode(&item); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		found, err := decode(item, depth+1)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// misspeltKind returns the kind that was meant where a group that olmcore knows all kinds of has none of an object's,
// and one that is near.
func misspeltKind(o olmcore.Object) []olmcore.KeyCase {
	gvk := olmcore.GVKOf(o)
	var kinds []string
	for _, k := range olmcore.Kinds() {
		if k.Group == gvk.Group {
			kinds = append(kinds, k.Kind)
		}
	}
	if slices.Contains(kinds, gvk.Kind) {
		return nil
	}
	if meant := spelling.Nearest(gvk.Kind, kinds); meant != "" {
		return []olmcore.KeyCase{{Path: "kind " + gvk.Kind, Field: meant, Misspelt: true}}
	}
	return nil
}

// itemsOf returns what decodes the items of a list one after another, since all of them apart are as large as the list.
func itemsOf(document []byte) (items *json.Decoder, isList bool) {
	var list struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"` // null where a program wrote a list without any
	}
	// An object that does not fit is no list; decode says what is wrong.
	if json.Unmarshal(document, &list) != nil || !strings.HasSuffix(list.Kind, "List") || len(list.Items) == 0 {
		return nil, false
	}
	if string(list.Items) == "null" {
		list.Items = json.RawMessage("[]")
	}
	items = json.NewDecoder(bytes.NewReader(list.Items))
	begin, err := items.Token()
	return items, err == nil && begin == json.Delim('[')
}
