// SPDX-License-Identifier: Apache-2.0

package decode

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

// Error is the error of a document that cannot be read.
type Error struct {
	File string
	// Document is the position of the document in the file, starting with 1.
	Document int
	Err      error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: document %d: %v", e.File, e.Document, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Object contains an object and the place where it was read.
type Object struct {
	olmcore.Object
	File string
	// Document is the position of the document in the file, starting with 1.
	Document int
	// Keys contains the keys that are not spelled like a field of the API. If the kind is unknown but resembles a known
	// kind, Keys contains the kind, too.
	Keys []KeyCase
}

// Limits of Read.
const (
	// MaxDocument is the maximum size of a document in bytes, both as text and as JSON.
	MaxDocument = 256 << 20
	// MaxDepth is the maximum depth of nested lists.
	MaxDepth = 8
)

// Read returns the objects of all documents in r: YAML documents or a stream of JSON values. It skips empty documents,
// and replaces lists (a kind that ends in "List", with items) by their items. file appears in errors, which are always
// an *Error. If there is an error, no objects are returned.
//
// A repeated key is an error in YAML; in JSON, the last one wins. A YAML document whose aliases expand to many times
// the size of its text is rejected.
func Read(file string, r io.Reader) ([]Object, error) {
	stream := yamljson.NewStream(r, MaxDocument)
	var objects []Object
	var undecodable error // reported only if the rest of the text consists of documents
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
		found, err := decodeDocument(document, 0)
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

// Distinct returns the objects without their places. The error is an *Error if an object has no name, or if two objects
// have the same kind, namespace and name.
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

func decodeDocument(document []byte, depth int) ([]Object, error) {
	if len(document) == 0 || string(document) == "null" {
		return nil, nil
	}
	items, isList := itemsOf(document)
	if !isList {
		o, keys, err := DecodeKeys(document)
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
		found, err := decodeDocument(item, depth+1)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// misspeltKind returns the known kind that the kind of an object resembles, if the group of the object has no such
// kind.
func misspeltKind(o olmcore.Object) []KeyCase {
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
		return []KeyCase{{Path: "kind " + gvk.Kind, Field: meant, Misspelt: true}}
	}
	return nil
}

// itemsOf returns a decoder of the items of a list. It decodes them one after another, because a copy of all items is
// as large as the list.
func itemsOf(document []byte) (items *json.Decoder, isList bool) {
	var list struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"` // null where a program wrote a list without any
	}
	// An object that does not fit is not a list. Its error is reported when it is decoded.
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
